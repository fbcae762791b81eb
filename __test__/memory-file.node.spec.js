'use strict';

// The file of a memory as the core writes it: whole after a kill, and readable in Python. crates/os and command.node.spec.js fill disks.

const { execFileSync, spawn, spawnSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const path = require('node:path');
const { setTimeout: sleep } = require('node:timers/promises');

const { TraceMemory, embed } = require('..');
const { makeTrace, makeTraces } = require('./support/make-trace.js');
const { root } = require('./support/paths.js');
const { python, testWithPackages } = require('./support/python.js');
const { run } = require('./support/run-script.js');
const { cacheFileIn, scratchDirectory } = require('./support/scratch.js');

/** What goes before a command so that permissions count for it, if root runs the tests. */
const UNPRIVILEGED =
  process.getuid?.() === 0
    ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-all']
    : ['env'];
const isUnprivileged = spawnSync(UNPRIVILEGED[0], [...UNPRIVILEGED.slice(1), 'true']).status === 0;

const scratch = scratchDirectory('memory-file');
const newFile = () => cacheFileIn(scratch);
const SIZE = 500;

/** The beginning of a program with a memory that takes a while to write; its last argument is the file. */
const LARGE = `
  const { TraceMemory } = require(${JSON.stringify(root)});
  const { makeTrace } = require(${JSON.stringify(path.join(__dirname, 'support', 'make-trace.js'))});
  const file = process.argv.at(-1);
  let memory = new TraceMemory({ method: 'lexical', maxElements: ${SIZE} });
  let added = 0;
  const add = () => {
    const id = String(added++);
    const words = Array.from({ length: 400 }, (_, at) => 'w' + ((added * 37 + at) % 4000));
    return memory.add(makeTrace({ objective: words.join(' '), id }));
  };
`;

/** The ids of all traces in a file. */
async function idsIn(file) {
  const loaded = await TraceMemory.load(file);
  return (await loaded.nearest(makeTrace(), loaded.size)).map(({ id }) => id);
}

test('save of a TraceMemory in a process that is killed at any moment leaves a whole file', async () => {
  const [filled, file] = [newFile(), newFile()];
  const fill = `${LARGE}(async () => { while (added < ${SIZE}) await add(); await memory.save(file); })();`;
  execFileSync(process.execPath, ['-e', fill, filled]);
  const program = `${LARGE}
    (async () => {
      memory = await TraceMemory.load(process.argv.at(-2));
      added = ${SIZE};
      for (;;) {
        await memory.save(file);
        process.stdout.write('.');
        for (let i = 0; i < 7; i++) await add();
      }
    })();
  `;
  const firsts = new Set();
  for (let kill = 0; kill < 16; kill++) {
    const child = spawn(process.execPath, ['-e', program, filled, file]);
    // Some have saved more often than others, and each is killed at another place of a save.
    for (let saves = 0; saves <= kill % 3; saves++) await once(child.stdout, 'data');
    await sleep((kill * 7) % 29);
    child.kill('SIGKILL');
    await once(child, 'close');
    const numbers = (await idsIn(file)).map(Number).sort((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: SIZE }, (_, at) => numbers[0] + at));
    firsts.add(numbers[0]);
  }
  expect(firsts.size).toBeGreaterThan(1);
  // What they were writing is all that is left of them.
  const others = fs.readdirSync(path.dirname(file)).filter((name) => name !== path.basename(file));
  expect(others.filter((name) => !/^\.knowledgepulse-\w+\.tmp$/.test(name))).toEqual([]);
});

(isUnprivileged ? test : test.skip)(
  'save of a TraceMemory replaces a file in a directory that cannot be read',
  async () => {
    const file = newFile();
    const script = `${LARGE}
      (async () => {
        for (const id of ['first', 'second']) {
          const memory = new TraceMemory({ method: 'lexical' });
          await memory.add(makeTrace({ id }));
          await memory.save(file);
          console.log(memory.size);
        }
      })().catch((error) => console.log(error.message));
    `;
    fs.chmodSync(path.dirname(file), 0o300);
    try {
      const [command, ...args] = [...UNPRIVILEGED, process.execPath, '-e', script, file];
      const { stdout } = await run(command, args);
      expect(stdout).toBe('1\n1\n');
    } finally {
      fs.chmodSync(path.dirname(file), 0o700);
    }
    expect(await idsIn(file)).toEqual(['second']);
  },
);

testWithPackages('numpy', 'safetensors')(
  'the Python of docs/memory.md reads a memory that was saved',
  async () => {
    const page = fs.readFileSync(path.join(root, 'docs', 'memory.md'), 'utf8');
    const [, script] = /```python\n(.*?)```/s.exec(page);
    const memory = new TraceMemory({ method: 'prefix', maxElements: 10, ttlMs: 60_000.5 });
    const before = Date.now();
    const traces = makeTraces(3);
    for (const trace of traces) await memory.add(trace);
    await memory.save(path.join(scratch, 'memory.safetensors'));
    const told = 'import json; print(json.dumps([vectors.tolist(), [str(time) for time in added]]))';
    const { code, stdout, stderr } = await run(python, ['-c', `${script}\n${told}`], {}, scratch);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const [vectors, added] = JSON.parse(stdout);
    const texts = traces.map(({ task, steps }) =>
      [task.objective, ...steps.map(({ content }) => content)].join(' '),
    );
    const embeddings = (await embed(texts)).map((embedding) => [...embedding]);
    expect(vectors).toEqual(
      embeddings.map((embedding) => embedding.map((component) => expect.closeTo(component, 5))),
    );
    for (const time of added.map((each) => Date.parse(`${each}Z`))) {
      expect(time).toBeGreaterThanOrEqual(before - 1);
      expect(time).toBeLessThanOrEqual(Date.now());
    }
  },
);
