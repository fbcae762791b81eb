'use strict';

// readTraces of the Agent Trajectory Interchange Format, and of what its own models make. Cargo's tests have its files of sub-agents and results.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

const fc = require('fast-check');

const { Scorer, explain } = require('../lib/scorer.js');
const { readTraces, sharedTraces } = require('./support/paths.js');
const { python, testWithPackages } = require('./support/python.js');
const { folder, tracesOf } = require('./support/reading-traces.js');
const { anyTurns, some } = require('./support/turns.js');

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
      for (const trace of each) breakdowns.push(await explain(scorer, trace, true));
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
        const breakdown = await explain(one, { ...found, metadata, outcome }, true);
        const { nearest, ...rest } = await explain(other, expected, true);
        expect(breakdown).toEqual({
          ...rest,
          nearest: nearest && { ...nearest, label: breakdown.nearest.label },
        });
      }
    });
  });
});
