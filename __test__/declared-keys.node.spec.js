'use strict';

// The declarations name what results have: the compiler takes each result as a value of its type, with no property more and none fewer.

const fs = require('node:fs');
const path = require('node:path');

const ts = require('typescript-5.4');

const kp = require('..');
const { makeTrace } = require('./support/make-trace.js');
const { root } = require('./support/paths.js');
const { scratchDirectory } = require('./support/scratch.js');

const declarations = path.join(root, 'index.js').replaceAll('\\', '/');
const directory = scratchDirectory('declared-keys');
const traces = [1, 2, 3].map((number) => makeTrace({ objective: `Task ${number} of three` }));

/** What the compiler says of values as literals of a declared type. */
function complaints(type, ...values) {
  const file = path.join(directory, `${type}.ts`);
  const literals = values.map((value) => `(${JSON.stringify(value)}) satisfies kp.${type};\n`);
  fs.writeFileSync(file, `import type * as kp from '${declarations}';\n${literals.join('')}`);
  const types = { module: ts.ModuleKind.NodeNext, lib: ['lib.es2022.d.ts'], types: [], skipLibCheck: true };
  const found = ts.getPreEmitDiagnostics(ts.createProgram([file], { ...types, strict: true, noEmit: true }));
  return found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
}

test('complaints are of what is missing, of what is not declared, and of other types', () => {
  const [missing, more, other] = [{}, { type: 'email', count: 1, kind: 1 }, { type: 'email', count: '1' }];
  const wrong = [missing, more, other].map((one) => ({ cleaned: 'a', redactions: [one] }));
  expect(complaints('PiiCleanResult', ...wrong)).toEqual([
    expect.stringContaining('missing the following properties'),
    expect.stringContaining('\'"kind"\' does not exist'),
    expect.stringContaining("'string' is not assignable to type 'number'"),
  ]);
});

test.each(['native', 'messages', 'atif', 'knowledgepulse'])(
  'share as %s gives a Manifest as it is declared',
  async (as) => {
    const lost = makeTrace({ objective: 'Lost' });
    const secret = makeTrace({ objective: 'Mail bob@example.org' });
    const shared = [...traces, secret, { ...lost, steps: 7 }];
    const manifest = await kp.share(shared, path.join(directory, as), { as });
    expect(manifest.leftOut).toHaveLength(1);
    expect(complaints('Manifest', manifest)).toEqual([]);
  },
);

test('score, compare and nearest give a Score and a NearestTrace as they are declared', async () => {
  const memory = new kp.TraceMemory({ method: 'lexical' });
  const scorer = new kp.Scorer({ memory });
  const scores = [await scorer.score(traces[0]), await scorer.score(traces[0])];
  expect(scores[1].nearest).not.toBeNull();
  expect(complaints('Score', ...scores)).toEqual([]);
  expect(complaints('NearestTrace', ...(await memory.nearest(traces[0])))).toEqual([]);
});

test('select gives a Selection as it is declared', async () => {
  const known = new kp.TraceMemory({ method: 'lexical' });
  await known.add(traces[2]);
  const selection = await kp.select([...traces, traces[0]], { count: 1, known });
  expect(selection.left.length).toBeGreaterThan(0);
  expect(complaints('Selection', selection)).toEqual([]);
});

test('embedderStatus gives an EmbedderStatus as it is declared', async () => {
  expect(complaints('EmbedderStatus', await kp.embedderStatus())).toEqual([]);
});

test('readTraces gives ReadResults with ReasoningTraces as they are declared', async () => {
  const results = [];
  for await (const result of kp.readTraces(path.join(root, '__test__', 'formats', 'session.jsonl')))
    results.push(result);
  expect(results.length).toBeGreaterThan(0);
  expect(complaints('ReadResult', ...results)).toEqual([]);
});

test('clean and cleanPii give results as they are declared', async () => {
  const text = 'Mail bob@example.org';
  const results = [await kp.clean(text), kp.cleanPii(text)];
  for (const { redactions } of results) expect(redactions).toHaveLength(1);
  expect(complaints('PiiCleanResult', ...results)).toEqual([]);
});
