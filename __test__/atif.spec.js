'use strict';

// readTraces of the Agent Trajectory Interchange Format, with sub-agents, and of what its own models make.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const fc = require('fast-check');

const { Scorer } = require('..');
const { readTraces, sharedTraces } = require('./support/paths.js');
const { python, testWithPackages } = require('./support/python.js');
const { folder, read, tracesOf } = require('./support/reading-traces.js');
const { scratchDirectory } = require('./support/scratch.js');
const { anyTurns, some } = require('./support/turns.js');

const directory = scratchDirectory('atif');
function write(name, value) {
  const file = path.join(directory, name);
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
  return file;
}

const trajectoryFile = path.join(folder, 'trial', 'agent', 'trajectory.json');
const trajectory = JSON.parse(fs.readFileSync(trajectoryFile, 'utf8'));

/** A trajectory of turns, behind a task. */
const trajectoryOfTurns = (turns) => ({
  ...{ schema_version: 'ATIF-v1.4', agent: { name: 'a', version: '1' } },
  steps: [
    { source: 'user', message: 'Begin' },
    ...turns.flatMap(({ user, reasoning, message = '', calls }) => [
      ...some(user, (message) => ({ source: 'user', message })),
      {
        ...{ source: 'agent', message },
        ...(reasoning !== undefined && { reasoning_content: reasoning }),
        ...(calls.length > 0 && {
          tool_calls: calls.map(({ id, name, value }) => ({
            ...{ tool_call_id: id, function_name: name, arguments: { value } },
          })),
          observation: { results: calls.map(({ id, result }) => ({ source_call_id: id, content: result })) },
        }),
      },
    ]),
  ].map((step, at) => ({ step_id: at + 1, ...step })),
});

describe('atif', () => {
  test.each([
    [{ verifier_result: { rewards: { reward: 0.25 } }, exception_info: { exception_type: 'X' } }, true, 0.25],
    [{ verifier_result: { rewards: { tests: 0 } } }, false, 0],
    [{ verifier_result: null, exception_info: { exception_type: 'AgentTimeoutError' } }, false, 0.5],
  ])('takes the outcome from result.json: %j', async (result, success, confidence) => {
    const file = write('trial/result.json', result);
    const [trace] = await tracesOf(trajectory, { file: path.join(file, '..', 'agent', 'trajectory.json') });
    expect(trace).toMatchObject({ metadata: { success }, outcome: { confidence } });
  });

  describe('with sub-agents in files of their own', () => {
    const step = (source, message, results) => ({
      ...{ step_id: 1, source, message },
      ...(results && { observation: { results } }),
    });
    const trajectoryOf = (id, references, rest) => ({
      ...{
        schema_version: 'ATIF-v1.8',
        session_id: 'run',
        trajectory_id: id,
        agent: { name: 'a', version: '1' },
      },
      steps: [
        step('user', `Do ${id}`),
        step('agent', `${id} is done`, [{ content: 'ok', subagent_trajectory_ref: references }]),
      ],
      ...rest,
    });
    const to = (...paths) => paths.map((trajectory_path) => ({ trajectory_path, session_id: 'run' }));
    const idsOf = (results) =>
      results.map(({ trace, error }) => error?.message ?? trace.metadata.imported.trajectory_id);

    test('reads each once, also where they refer to each other, and none outside its folder', async () => {
      const outside = write('outside.json', trajectoryOf('outside'));
      const names = [
        'one.json',
        'below/two.json',
        '../outside.json',
        outside,
        'link.json',
        'linked/outside.json',
      ];
      const file = write(
        'agent/trajectory.json',
        trajectoryOf('main', to(...names, 'gone.json', 's3://b/x', '')),
      );
      write('agent/one.json', trajectoryOf('one', to('below/two.json', 'trajectory.json', 'one.json')));
      write(
        'agent/below/two.json',
        `\ufeff${JSON.stringify(trajectoryOf('two', to('three.json', '../one.json')))}`,
      );
      write('agent/below/three.json', trajectoryOf('three', to('../../outside.json')));
      write('result.json', { verifier_result: { rewards: { reward: 1 } } });
      if (process.platform !== 'win32') {
        fs.symlinkSync(outside, path.join(directory, 'agent', 'link.json'));
        fs.symlinkSync(directory, path.join(directory, 'agent', 'linked'));
      }
      const found = await read(fs.createReadStream(file), { file });
      expect(idsOf(found)).toEqual(['main', 'one', 'two', 'three']);
      expect(found.map(({ known }) => known.success)).toEqual([true, false, false, false]);
      expect(found[2].trace).toMatchObject({
        metadata: { imported: { is_subagent: true, trajectory_path: 'below/two.json' } },
        task: { objective: 'Do two' },
      });
      // Nobody knows which folder it is in.
      expect(idsOf(await read(fs.createReadStream(file)))).toEqual(['main']);
    });

    test('takes one that is there already, and names one that is broken', async () => {
      const embedded = { ...trajectoryOf('sub'), steps: [step('user', 'Do it'), step('agent', 'embedded')] };
      const references = [{ trajectory_id: 'sub', trajectory_path: 'sub.json' }];
      const broken = ['cut.json', 'chat.json', 'latin.json', 'steps.json', 'good.json'];
      const main = trajectoryOf('main', [...references, ...to(...broken)], {
        subagent_trajectories: [embedded],
      });
      const file = write('mixed/trajectory.json', main);
      write('mixed/sub.json', trajectoryOf('other'));
      write('mixed/cut.json', '{"schema_version":');
      write('mixed/chat.json', '{"messages":[]}');
      write('mixed/steps.json', { ...trajectoryOf('x'), steps: 1 });
      write('mixed/good.json', trajectoryOf('good'));
      fs.writeFileSync(path.join(directory, 'mixed', 'latin.json'), Buffer.from([0x22, 0xe9, 0x22]));
      expect(idsOf(await read(fs.createReadStream(file), { file }))).toEqual([
        ...['main', 'sub'],
        'line 1: not atif: the sub-agent in cut.json: not JSON in UTF-8',
        'line 1: not atif: the sub-agent in chat.json: it has no schema_version of ATIF',
        'line 1: not atif: the sub-agent in latin.json: not JSON in UTF-8',
        'line 1: not atif: the sub-agent in steps.json: steps must be an array',
        'good',
      ]);
    });
  });

  test('of every version is read', async () => {
    for (let minor = 0; minor <= 8; minor++) {
      const { length } = await tracesOf({ ...trajectory, schema_version: `ATIF-v1.${minor}` });
      expect(length).toBe(2);
    }
  });

  const program = path.join(folder, 'make-atif.py');
  const testModels = testWithPackages('atif');

  testModels('is what the models of the format make, and what they validate', () => {
    expect(JSON.parse(execFileSync(python, [program, 'make'], { encoding: 'utf8' }))).toEqual(trajectory);
    const made = fc
      .sample(anyTurns, { numRuns: 50, seed: 7 })
      .map(({ turns }) => JSON.stringify(trajectoryOfTurns(turns)));
    execFileSync(python, [program, 'validate'], { input: made.join('\n') });
  });

  test('loses and invents no step', async () => {
    await fc.assert(
      fc.asyncProperty(anyTurns, async ({ turns, contents }) => {
        const [trace] = await tracesOf(trajectoryOfTurns(turns));
        expect((trace?.steps ?? []).map(({ content }) => content)).toEqual(contents);
      }),
      { numRuns: 200 },
    );
  });

  test.each([
    ['the model', undefined],
    ['no embedder', null],
  ])('is scored as the trace that it becomes, with %s', async (_, embedder) => {
    const traces = await tracesOf(fs.createReadStream(trajectoryFile), { file: trajectoryFile });
    const written = traces.map((trace) => JSON.stringify(trace)).join('\n');
    const again = await tracesOf(written);
    expect(again).toEqual(JSON.parse(`[${written.replace('\n', ',')}]`));
    const explained = async (each) => {
      const scorer = new Scorer({ embedder });
      const breakdowns = [];
      for (const trace of each) breakdowns.push(await scorer.explain(trace));
      return breakdowns;
    };
    const [main, review] = await explained(traces);
    // 3 of 4 types and a recovery and 12 steps; 3 tools in 12 steps; a certain success; nothing to compare with.
    const complexity = 0.5 + 0.3 + (12 / 20) * 0.2;
    expect(main.score).toBeCloseTo(0.25 * complexity + 0.35 * 0.5 + 0.15 * ((3 / 12) * 3) + 0.25, 6);
    expect(review.noveltyBasis).toBe(embedder === null ? 'no-embedder' : 'cache');
    expect(await explained(again)).toEqual([main, review]);
  });

  const describeShared = testModels === test && fs.existsSync(sharedTraces) ? describe : describe.skip;
  if (!fs.existsSync(sharedTraces)) console.warn(`skipped: there are no traces in ${sharedTraces}`);
  describeShared('of real traces, and back', () => {
    let pairs;
    beforeAll(async () => {
      const hotpot = path.join(path.dirname(sharedTraces), 'hotpot.jsonl');
      const traces = [sharedTraces, hotpot].filter((file) => fs.existsSync(file)).flatMap(readTraces);
      const input = traces.map((trace) => JSON.stringify(trace)).join('\n');
      const made = execFileSync(python, [program, 'convert'], { input, maxBuffer: 2 ** 28 });
      const found = await tracesOf(made);
      expect(found).toHaveLength(traces.length);
      pairs = traces.map((trace, at) => {
        const { metadata, outcome } = trace;
        return {
          ...{ metadata, outcome },
          expected: { ...trace, steps: asRead(trace.steps) },
          found: found[at],
        };
      });
    });

    /** The steps as the documentation says that they are read: calls as text, and what repairs a failure. */
    function asRead(steps) {
      const failed = new Set();
      return steps.map((step, at) => {
        const { input, tool, type } = step;
        if (type !== 'tool_call') return step;
        const lines = Object.entries(input).map(
          ([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`,
        );
        const result = steps[at + 1]?.type;
        const repairs = result === 'observation' && failed.delete(tool.name);
        if (result === 'error_recovery') failed.add(tool.name);
        return {
          ...{ step_id: at, type: repairs ? 'error_recovery' : type },
          ...{ content: [tool.name, ...lines].join('\n'), tool, input },
        };
      });
    }

    test('has the same steps', () => {
      for (const { expected, found } of pairs) {
        expect(found.task).toEqual(expected.task);
        expect(found.steps).toEqual(expected.steps);
      }
      const unchanged = pairs.filter(({ expected }) =>
        expected.steps.every(({ type }) => type !== 'error_recovery'),
      );
      expect(unchanged.length).toBeGreaterThan(10);
    });

    test('has the same scores', async () => {
      const some = pairs.filter((_, at) => at % 200 === 0);
      const [one, other] = [new Scorer(), new Scorer()];
      for (const { metadata, outcome, expected, found } of some) {
        const breakdown = await one.explain({ ...found, metadata, outcome });
        const { nearest, ...rest } = await other.explain(expected);
        expect(breakdown).toEqual({
          ...rest,
          nearest: nearest && { ...nearest, label: breakdown.nearest.label },
        });
      }
    });
  });
});
