'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const fc = require('fast-check');

const { Scorer } = require('..');
const { toTraces } = require('../formats.js');
const { readTraces, root, sharedTraces } = require('./support/paths.js');

const folder = path.join(__dirname, 'formats');
const trajectoryFile = path.join(folder, 'trial', 'agent', 'trajectory.json');
const trajectory = JSON.parse(fs.readFileSync(trajectoryFile, 'utf8'));

/** All that is read of an input. */
async function read(input, options) {
  const results = [];
  for await (const result of toTraces(input, options)) results.push(result);
  return results;
}

/** All traces of an input in which nothing is bad. */
async function tracesOf(input, options) {
  return (await read(input, options)).map(({ error, trace }) => {
    if (error) throw error;
    return trace;
  });
}

const streamOf = (name) => fs.createReadStream(path.join(folder, name));

/** The steps of a trace, each as its type and what novelty compares. */
const stepsOf = ({ steps }) => steps.map(({ type, content }) => [type, content]);

describe('atif', () => {
  test('becomes a trace, and each sub-agent one of its own', async () => {
    const [main, review] = await read(fs.createReadStream(trajectoryFile), { file: trajectoryFile });
    expect(main).toMatchObject({
      line: 1,
      index: null,
      format: 'atif',
      known: { success: true, confidence: true },
    });
    expect(stepsOf(main.trace)).toEqual([
      ['thought', 'A test that shows it comes first.'],
      ['thought', 'I run the tests.'],
      ['tool_call', 'bash\ncommand: pytest tests/test_parser.py\ntimeout: 60'],
      ['error_recovery', 'Error: no module named pytest'],
      ['error_recovery', 'bash\ncommand: python -m unittest tests.test_parser'],
      ['tool_call', 'read_file\npath: parser.py'],
      ['observation', 'Ran 12 tests. OK'],
      ['observation', "def lines(text):\n    return text.split('\\n')[:-1]"],
      ['thought', 'A colleague checks the fix.'],
      ['tool_call', 'delegate\ntask: Review parser.py'],
      ['observation', '[sub-agent review]'],
      ['thought', 'The last line is kept now, and a test holds that.'],
    ]);
    expect(main.trace).toMatchObject({
      id: expect.stringMatching(
        /^kp:trace:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      ),
      metadata: {
        created_at: '2026-03-04T10:00:01.000Z',
        framework: 'mini-agent',
        success: true,
        visibility: 'private',
        imported: {
          format: 'atif',
          version: 'ATIF-v1.8',
          model: 'example/model-1',
          reward: 1,
          final_metrics: { total_prompt_tokens: 812, total_steps: 7 },
          left_out: { 'system message': 1, 'copied step': 1 },
        },
      },
      task: { objective: 'The parser drops the last line of a file without a newline. Fix it.' },
      outcome: { result_summary: 'The last line is kept now, and a test holds that.', confidence: 1 },
    });
    expect(main.trace.steps[2]).toMatchObject({
      tool: { name: 'bash' },
      input: { command: 'pytest tests/test_parser.py', timeout: 60 },
    });
    expect(stepsOf(review.trace)).toEqual([['thought', 'It is right.']]);
    expect(review).toMatchObject({
      known: { success: false, confidence: false },
      trace: { metadata: { imported: { is_subagent: true } } },
    });
  });

  test.each([
    [{ verifier_result: { rewards: { reward: 0.25 } }, exception_info: { exception_type: 'X' } }, true, 0.25],
    [{ verifier_result: { rewards: { tests: 0 } } }, false, 0],
    [{ verifier_result: null, exception_info: { exception_type: 'AgentTimeoutError' } }, false, 0.5],
  ])('takes the outcome from result.json: %j', async (result, success, confidence) => {
    const directory = fs.mkdtempSync(path.join(require('node:os').tmpdir(), 'formats-'));
    try {
      fs.writeFileSync(path.join(directory, 'result.json'), JSON.stringify(result));
      const [trace] = await tracesOf(trajectory, { file: path.join(directory, 'agent', 'trajectory.json') });
      expect(trace).toMatchObject({ metadata: { success }, outcome: { confidence } });
    } finally {
      fs.rmSync(directory, { recursive: true });
    }
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
    let directory;
    beforeAll(() => {
      directory = fs.mkdtempSync(path.join(os.tmpdir(), 'formats-'));
    });
    afterAll(() => fs.rmSync(directory, { recursive: true }));
    const write = (name, value) => {
      const file = path.join(directory, name);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value));
      return file;
    };
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

  test('that only goes on has the objective of what it goes on with', async () => {
    const copied = { source: 'user', message: 'Do it', is_copied_context: true };
    const done = { source: 'agent', message: 'done' };
    const objectiveOf = async (...steps) =>
      (await tracesOf({ schema_version: 'ATIF-v1.8', agent: {}, steps }))[0].task.objective;
    expect(await objectiveOf(copied, { ...copied, message: 'Again' }, done)).toBe('Do it');
    expect(await objectiveOf(copied, done, { source: 'user', message: 'Now this' })).toBe('Now this');
  });

  test('pairs results without an id with the calls of their step', async () => {
    const call = (tool_call_id) => ({ tool_call_id, function_name: tool_call_id, arguments: {} });
    const turn = (calls, ...contents) => ({
      ...{ source: 'agent', message: '', tool_calls: calls.map(call) },
      observation: { results: contents.map((content) => ({ content })) },
    });
    const steps = [
      turn(['a', 'b'], 'fine', 'Error: no'),
      turn(['b', 'c'], 'one for both'),
      turn(['b'], 'fine'),
    ];
    const [trace] = await tracesOf({ schema_version: 'ATIF-v1.7', agent: {}, steps });
    expect(trace.steps.map(({ type, tool }) => tool?.name ?? type)).toEqual([
      ...['a', 'b', 'observation', 'error_recovery'],
      ...['b', 'c', 'observation', 'b', 'observation'],
    ]);
    expect(trace.steps.at(-2).type).toBe('tool_call');
    expect(trace.metadata.imported.left_out).toEqual({ 'call without a result': 2 });
  });

  test('of every version is read', async () => {
    for (let minor = 0; minor <= 8; minor++) {
      const { length } = await tracesOf({ ...trajectory, schema_version: `ATIF-v1.${minor}` });
      expect(length).toBe(2);
    }
  });

  test('keeps and counts what it does not know', async () => {
    const [trace] = await tracesOf({
      ...{ schema_version: 'ATIF-v1.9', agent: {}, mood: 'good', extra: { run: 3 } },
      steps: [
        {
          source: 'user',
          message: [
            { type: 'image', source: {} },
            { type: 'text', text: 'Look' },
          ],
          weather: 1,
        },
      ],
    });
    expect(trace.task.objective).toBe('[image]\nLook');
    expect(trace.metadata.imported).toMatchObject({
      extra: { run: 3 },
      left_out: { 'field mood': 1, 'field weather': 1, 'image part': 1 },
    });
  });

  const python = path.join(
    root,
    'model',
    '.venv',
    process.platform === 'win32' ? 'Scripts' : 'bin',
    'python',
  );
  const program = path.join(folder, 'make-atif.py');
  const hasModels = (() => {
    try {
      execFileSync(python, ['-c', 'import atif'], { stdio: 'pipe' });
      return true;
    } catch {
      return false;
    }
  })();
  if (!hasModels) console.warn('skipped: the Python package atif of scripts/readers.txt is not installed');
  const testModels = hasModels ? test : test.skip;

  testModels('is what the models of the format make, and what they validate', () => {
    expect(JSON.parse(execFileSync(python, [program, 'make'], { encoding: 'utf8' }))).toEqual(trajectory);
    const made = fc
      .sample(anyTrajectory, { numRuns: 50, seed: 7 })
      .map(({ trajectory }) => JSON.stringify(trajectory));
    execFileSync(python, [program, 'validate'], { input: made.join('\n') });
  });

  test('loses and invents no step', async () => {
    await fc.assert(
      fc.asyncProperty(anyTrajectory, async ({ trajectory, steps }) => {
        const [trace] = await tracesOf(trajectory);
        expect(trace.steps.map(({ content }) => content)).toEqual(steps);
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

  const describeShared = hasModels && fs.existsSync(sharedTraces) ? describe : describe.skip;
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

const anyText = fc.stringMatching(/^[a-z]{1,8}( [a-z]{1,8})?$/);

/** A trajectory, and the contents of the steps that it must become. */
const anyTrajectory = fc
  .array(
    fc.oneof(
      fc.record({ source: fc.constantFrom('system', 'user'), message: anyText }),
      fc.record({
        source: fc.constant('agent'),
        message: fc.oneof(fc.constant(''), anyText),
        reasoning: fc.option(anyText, { nil: undefined }),
        calls: fc.array(
          fc.record({ name: anyText, value: anyText, result: fc.option(anyText, { nil: undefined }) }),
          { maxLength: 3 },
        ),
      }),
    ),
    { maxLength: 12 },
  )
  .map((turns) => {
    let hasObjective = false;
    const contents = [];
    const steps = turns.map(({ source, message, reasoning, calls = [] }, at) => {
      if (source === 'user') {
        if (hasObjective) contents.push(message);
        hasObjective = true;
      }
      if (source === 'agent') {
        if (reasoning !== undefined) contents.push(reasoning);
        if (message !== '') contents.push(message);
        contents.push(...calls.map(({ name, value }) => `${name}\nvalue: ${value}`));
        contents.push(...calls.flatMap(({ result }) => result ?? []));
      }
      const results = calls.flatMap(({ result }, call) =>
        result === undefined ? [] : [{ source_call_id: `${at}.${call}`, content: result }],
      );
      return {
        ...{ step_id: at + 1, source, message },
        ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
        ...(calls.length === 0
          ? {}
          : {
              tool_calls: calls.map(({ name, value }, call) => ({
                tool_call_id: `${at}.${call}`,
                function_name: name,
                arguments: { value },
              })),
            }),
        ...(results.length === 0 ? {} : { observation: { results } }),
      };
    });
    return {
      trajectory: { schema_version: 'ATIF-v1.4', agent: { name: 'a', version: '1' }, steps },
      steps: contents,
    };
  })
  .filter(({ trajectory, steps }) => steps.length > 0 && trajectory.steps.length > 0);

describe('openai-chat', () => {
  test('tells chat completions, Responses and Anthropic messages apart', async () => {
    const results = await read(streamOf('chat.jsonl'));
    expect(results.map(({ format, line }) => [format, line])).toEqual([
      ['openai-chat', 1],
      ['openai-chat', 2],
      ['openai-chat', 3],
    ]);
    const [chat, responses, anthropic] = results.map(({ trace }) => trace);
    expect(stepsOf(chat)).toEqual([
      ['tool_call', 'find_booking\ndestination: Oslo'],
      ['error_recovery', '{"error":"no customer given"}'],
      ['thought', 'What is your booking number?'],
      ['observation', 'KX21'],
      ['error_recovery', 'find_booking\nbooking: KX21'],
      ['observation', '{"flight":"OSL9"}'],
      ['thought', 'Your flight OSL9 is cancelled.'],
    ]);
    expect(chat).toMatchObject({
      task: { objective: 'Cancel my flight to Oslo, please.' },
      metadata: { success: true },
      outcome: { confidence: 0.5 },
    });
    expect(stepsOf(responses)).toEqual([
      ['thought', 'The tool knows.'],
      ['tool_call', 'weather\ncity: Rome'],
      ['observation', '21 degrees'],
      ['thought', '21 degrees.'],
    ]);
    expect(responses.metadata.created_at).toBe('2026-01-01T00:00:00.000Z');
    expect(stepsOf(anthropic)).toEqual([
      ['thought', 'I read it.'],
      ['thought', 'I look.'],
      ['tool_call', 'read_file\npath: notes.txt'],
      ['error_recovery', 'permission denied'],
      ['error_recovery', 'read_file\npath: ./notes.txt'],
      ['observation', 'milk'],
      ['observation', 'Well?'],
      ['thought', 'Milk.'],
    ]);
    expect(results.map(({ known }) => known.success)).toEqual([true, false, false]);
  });

  const turn = (role, content) => ({ role, content });
  const conversation = [turn('user', 'Hello'), turn('assistant', 'Good day')];

  test.each([
    ['an array', JSON.stringify(conversation), 1],
    ['an array a line', `${JSON.stringify(conversation)}\n${JSON.stringify(conversation)}`, 2],
    ['an array of arrays', JSON.stringify([conversation, conversation]), 2],
    ['a message a line', conversation.map((each) => JSON.stringify(each)).join('\n'), 1],
    [
      'a log of requests',
      JSON.stringify({
        request: { messages: [conversation[0]] },
        response: { choices: [{ message: conversation[1] }] },
      }),
      1,
    ],
    [
      'a line of a batch',
      JSON.stringify({
        custom_id: 'x',
        body: { messages: [conversation[0]] },
        response: { body: { choices: [{ message: conversation[1] }] } },
      }),
      1,
    ],
    [
      'Responses with a text',
      JSON.stringify({
        input: 'Hello',
        output: [
          { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Good day' }] },
        ],
      }),
      1,
    ],
  ])('is found in %s', async (_, text, count) => {
    const traces = await tracesOf(text);
    expect(traces.map((trace) => [trace.task.objective, stepsOf(trace)])).toEqual(
      Array(count).fill(['Hello', [['thought', 'Good day']]]),
    );
  });

  test('a reply alone is a conversation', async () => {
    const message = { role: 'assistant', content: 'Done.' };
    const reply = { id: 'reply', object: 'chat.completion', choices: [{ index: 0, message }] };
    for (const record of [reply, { custom_id: 'r-1', response: { status_code: 200, body: reply } }]) {
      const [{ trace, format }, ...others] = await read(record);
      expect([others, format, stepsOf(trace)]).toEqual([[], 'openai-chat', [['thought', 'Done.']]]);
    }
    // Of an output file of a batch, a request that has failed.
    const failed = { custom_id: 'r-2', response: null, error: { code: 'expired' } };
    expect((await read(failed))[0].error.code).toBe('ERR_INVALID_RECORD');
  });

  test('is the same as a value, as text and in chunks of any size', async () => {
    const text = fs.readFileSync(path.join(folder, 'chat.jsonl'));
    const values = String(text)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const withoutTime = (traces) =>
      traces.map((trace) => ({ ...trace, metadata: { ...trace.metadata, created_at: '' } }));
    const expected = withoutTime(await tracesOf(values));
    expect(withoutTime(await tracesOf(String(text)))).toEqual(expected);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 50 }), fc.boolean(), async (size, hasMark) => {
        const bytes = hasMark ? Buffer.concat([Buffer.from('\ufeff'), text]) : text;
        const chunks = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
          bytes.subarray(at * size, (at + 1) * size),
        );
        async function* stream() {
          yield* chunks;
        }
        expect(withoutTime(await tracesOf(stream()))).toEqual(expected);
      }),
      { numRuns: 10 },
    );
  });
});

/** Turns of an agent, and the contents of the steps that they must become in every format. */
const anyTurns = fc
  .array(
    fc.record({
      user: fc.option(anyText, { nil: undefined }),
      reasoning: fc.option(anyText, { nil: undefined }),
      message: fc.option(anyText, { nil: undefined }),
      calls: fc.array(fc.record({ name: anyText, value: anyText, result: anyText }), { maxLength: 3 }),
    }),
    { minLength: 1, maxLength: 8 },
  )
  .map((turns) => ({
    turns,
    contents: turns.flatMap(({ user, reasoning, message, calls }) => [
      ...[user, reasoning, message].filter((text) => text !== undefined),
      ...calls.map(({ name, value }) => `${name}\nvalue: ${value}`),
      ...calls.map(({ result }) => result),
    ]),
  }));

/** The messages of turns, each call with an id, as each API writes them. */
const WRITERS = {
  'chat completions': ({ user, reasoning, message, calls }, at) => [
    ...(user === undefined ? [] : [{ role: 'user', content: user }]),
    {
      ...{ role: 'assistant', content: message ?? null, reasoning_content: reasoning },
      tool_calls: calls.map(({ name, value }, call) => ({
        ...{ id: `${at}.${call}`, type: 'function' },
        function: { name, arguments: JSON.stringify({ value }) },
      })),
    },
    ...calls.map(({ result }, call) => ({ role: 'tool', tool_call_id: `${at}.${call}`, content: result })),
  ],
  Responses: ({ user, reasoning, message, calls }, at) => [
    ...(user === undefined ? [] : [{ role: 'user', content: [{ type: 'input_text', text: user }] }]),
    ...(reasoning === undefined
      ? []
      : [{ type: 'reasoning', summary: [{ type: 'summary_text', text: reasoning }] }]),
    ...(message === undefined
      ? []
      : [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: message }] }]),
    ...calls.map(({ name, value }, call) => ({
      type: 'function_call',
      call_id: `${at}.${call}`,
      name,
      arguments: JSON.stringify({ value }),
    })),
    ...calls.map(({ result }, call) => ({
      type: 'function_call_output',
      call_id: `${at}.${call}`,
      output: result,
    })),
  ],
  Anthropic: ({ user, reasoning, message, calls }, at) => [
    ...(user === undefined ? [] : [{ role: 'user', content: user }]),
    {
      role: 'assistant',
      content: [
        ...(reasoning === undefined ? [] : [{ type: 'thinking', thinking: reasoning }]),
        ...(message === undefined ? [] : [{ type: 'text', text: message }]),
        ...calls.map(({ name, value }, call) => ({
          type: 'tool_use',
          id: `${at}.${call}`,
          name,
          input: { value },
        })),
      ],
    },
    {
      role: 'user',
      content: calls.map(({ result }, call) => ({
        type: 'tool_result',
        tool_use_id: `${at}.${call}`,
        content: result,
      })),
    },
  ],
  Converse: ({ user, reasoning, message, calls }, at) => [
    ...(user === undefined ? [] : [{ role: 'user', content: [{ text: user }] }]),
    {
      role: 'assistant',
      content: [
        ...(reasoning === undefined ? [] : [{ reasoningContent: { reasoningText: { text: reasoning } } }]),
        ...(message === undefined ? [] : [{ text: message }]),
        ...calls.map(({ name, value }, call) => ({
          toolUse: { toolUseId: `${at}.${call}`, name, input: { value } },
        })),
      ],
    },
    {
      role: 'user',
      content: calls.map(({ result }, call) => ({
        toolResult: { toolUseId: `${at}.${call}`, content: [{ text: result }] },
      })),
    },
  ],
  'the AI SDK': ({ user, reasoning, message, calls }, at) => [
    ...(user === undefined ? [] : [{ role: 'user', content: user }]),
    {
      role: 'assistant',
      content: [
        ...(reasoning === undefined ? [] : [{ type: 'reasoning', text: reasoning }]),
        ...(message === undefined ? [] : [{ type: 'text', text: message }]),
        ...calls.map(({ name, value }, call) => ({
          ...{ type: 'tool-call', toolCallId: `${at}.${call}`, toolName: name, input: { value } },
        })),
      ],
    },
    ...(calls.length === 0
      ? []
      : [
          {
            role: 'tool',
            content: calls.map(({ name, result }, call) => ({
              ...{ type: 'tool-result', toolCallId: `${at}.${call}`, toolName: name },
              output: { type: 'text', value: result },
            })),
          },
        ]),
  ],
};

describe.each(Object.entries(WRITERS))('%s', (_, write) => {
  const first = { role: 'user', content: 'Begin' };

  test('lose and invent no step, in a conversation and in a session', async () => {
    await fc.assert(
      fc.asyncProperty(anyTurns, async ({ turns, contents }) => {
        const messages = [first, ...turns.flatMap(write)];
        const events = messages
          .filter(({ role }) => role !== undefined && role !== 'tool')
          .map((message) => ({ type: message.role, sessionId: 's', message }));
        const inputs = [[{ messages }], [messages], messages];
        if (write === WRITERS.Anthropic) inputs.push(events);
        for (const input of inputs) {
          const traces = await tracesOf(input);
          expect(traces.map(({ steps }) => steps.map(({ content }) => content))).toEqual([contents]);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('claude-code', () => {
  const lines = fs.readFileSync(path.join(folder, 'session.jsonl'), 'utf8').trim().split('\n');

  test('sessions become traces, and sidechains traces of their own', async () => {
    const [main, helper, ...others] = await read(streamOf('session.jsonl'));
    expect(others).toEqual([]);
    expect(main).toMatchObject({
      line: 3,
      format: 'claude-code',
      known: { success: false, confidence: false },
    });
    expect(stepsOf(main.trace)).toEqual([
      ['thought', 'Where is it parsed?'],
      ['tool_call', 'Bash\ncommand: npm test\ndescription: Run the tests'],
      ['error_recovery', 'Exit code 1\n1 test failed'],
      ['thought', 'A helper looks for it.'],
      ['tool_call', 'Task\nprompt: Find the date parser'],
      ['observation', 'It is in src/date.js.'],
      ['tool_call', 'mcp__files__edit\npath: src/date.js'],
      ['observation', "The user doesn't want to proceed with this tool use. The tool use was rejected."],
      ['observation', 'Then only run the tests.'],
      ['tool_call', 'Bash\ncommand: npm test'],
    ]);
    expect(main.trace.steps[6].tool).toEqual({ name: 'mcp__files__edit', mcp_server: 'files' });
    expect(main.trace).toMatchObject({
      task: { objective: 'The date parser takes 30 February. Fix it.' },
      metadata: {
        ...{ framework: 'claude-code', task_domain: 'code', created_at: '2026-02-01T08:59:59.000Z' },
        imported: {
          ...{ version: '2.0.14', gitBranch: 'main', model: 'example-model' },
          left_out: {
            ...{ 'meta message': 1, 'event system': 1, 'summary of a compaction': 1 },
            ...{ 'repeated event': 1, 'call without a result': 1 },
          },
        },
      },
    });
    expect(stepsOf(helper.trace)).toEqual([['thought', 'It is in src/date.js.']]);
    expect(helper.trace.task.objective).toBe('Find the date parser');
  });

  test('a published session has each step once', async () => {
    const [trace, ...others] = await tracesOf(streamOf('published/claude-code.jsonl'));
    expect(others).toEqual([]);
    expect(trace.task.objective).toMatch(/^Oh, I just found out that this is not supported by Chrome/);
    expect(trace.steps.map(({ type, tool, content }) => [type, tool?.name ?? content.slice(0, 16)])).toEqual([
      ['thought', "I'll help you re"],
      ['tool_call', 'Grep'],
      ['observation', '/Users/dain/work'],
      ['tool_call', 'ExitPlanMode'],
      ['observation', 'User has approve'],
      ['tool_call', 'TodoWrite'],
      ['observation', 'Todos have been '],
      ['tool_call', 'Edit'],
      ['error_recovery', '<tool_use_error>'],
      ['tool_call', 'Read'],
      ['observation', '    95\u2192  }\n    9'],
    ]);
    expect(trace.metadata).toMatchObject({
      created_at: '2025-09-29T17:07:46.135Z',
      imported: { version: '1.0.128', gitBranch: 'main', left_out: { 'repeated event': 1 } },
    });
  });

  test('what stream-json prints says whether it succeeded', async () => {
    const session_id = 's';
    const events = [
      { type: 'system', subtype: 'init', session_id, cwd: '/' },
      {
        type: 'assistant',
        session_id,
        parent_tool_use_id: null,
        message: { role: 'assistant', content: 'Done.' },
      },
      { type: 'result', subtype: 'success', is_error: false, session_id, num_turns: 1 },
    ];
    const [{ trace, known }] = await read(events);
    expect(trace).toMatchObject({
      metadata: { success: true, imported: { num_turns: 1 } },
      steps: [{ content: 'Done.' }],
    });
    expect(known).toEqual({ success: true, confidence: false });
    for (const result of [
      { subtype: 'error_max_turns', is_error: false },
      { subtype: 'error_max_turns' },
      { subtype: 'success', is_error: true },
    ]) {
      const [failed] = await read([events[1], { ...events[2], is_error: undefined, ...result }]);
      expect([failed.trace.metadata.success, failed.known.success]).toEqual([false, true]);
    }
  });

  test('commands of the program are not what the user asked for', async () => {
    const user = (content) => ({ type: 'user', sessionId: 's', message: { role: 'user', content } });
    const [trace] = await tracesOf([
      user('<command-name>/clear</command-name>\n            <command-message>clear</command-message>'),
      user('<local-command-stdout></local-command-stdout>'),
      user('<bash-input>git status</bash-input>'),
      user([{ type: 'text', text: '<bash-stdout>clean</bash-stdout><bash-stderr></bash-stderr>' }]),
      user('<command-message>review is running</command-message>\n<command-name>/review</command-name>'),
      user('<command-name> is a tag'),
    ]);
    expect(trace.task.objective).toMatch(/^<command-message>review/);
    expect(trace.steps.map(({ type, content }) => [type, content.slice(0, 14)])).toEqual([
      ['observation', '<bash-input>gi'],
      ['observation', '<bash-stdout>c'],
      ['observation', '<command-name>'],
    ]);
    expect(trace.metadata.imported.left_out).toEqual({ 'command of the program': 2 });
  });

  test('sessions that are mixed are told apart, and circles of parents end', async () => {
    const renamed = lines.map((line) => line.replaceAll('5f0c7c9e', 'other').replaceAll(/"(u|s)-/g, '"$1x'));
    const mixed = lines.flatMap((line, at) => [line, renamed[at]]);
    expect((await tracesOf(mixed.join('\n'))).map(({ steps }) => steps.length)).toEqual([10, 10, 1, 1]);
    const circle = (uuid, parentUuid) => ({
      type: 'user',
      sessionId: 's',
      isSidechain: true,
      uuid,
      parentUuid,
      message: { content: uuid },
    });
    expect(await tracesOf([circle('a', 'b'), circle('b', 'a'), circle('c', 'c')])).toHaveLength(2);
  });

  test('a bounded number of traces is open', async () => {
    const event = (at) => ({ type: 'user', sessionId: `s${at}`, message: { content: 'Hello' } });
    const results = await read([...Array.from({ length: 1100 }, (_, at) => event(at)), event(0)]);
    expect(results.filter(({ trace }) => trace)).toHaveLength(1100);
    expect(results.find(({ error }) => error).error.message).toMatch(/comes too late for its trace/);
  });
});

describe('swe-agent', () => {
  test('files of both versions, and of mini-SWE-agent, become traces', async () => {
    const results = await read(streamOf('runs.traj.jsonl'));
    expect(results.map(({ format }) => format)).toEqual(Array(3).fill('swe-agent'));
    const [old, current, mini] = results.map(({ trace }) => trace);
    expect(stepsOf(old)).toEqual([
      ['thought', 'I look for it.'],
      ['tool_call', 'search_dir\ncommand: search_dir "USE_TZ"'],
      ['observation', 'Found 2 matches'],
      ['thought', 'I reproduce it.'],
      ['tool_call', 'python\ncommand: python reproduce.py'],
      ['error_recovery', 'Traceback (most recent call last):\n  ZeroDivisionError'],
      ['thought', 'Fixed.'],
      ['error_recovery', 'python\ncommand: python reproduce.py'],
      ['observation', 'ok'],
      ['thought', 'I submit.'],
      ['tool_call', 'submit\ncommand: submit'],
      ['observation', 'diff --git a/x b/x'],
    ]);
    expect(stepsOf(current)).toEqual([
      ['tool_call', 'str_replace_editor\ncommand: str_replace_editor view /repo'],
      ['observation', ''],
      ['thought', 'no action'],
      ['observation', 'Your output was malformed'],
    ]);
    expect(current.steps[0].latency_ms).toBe(250);
    expect(stepsOf(mini)).toEqual([
      ['thought', expect.stringMatching(/^I count/)],
      ['tool_call', 'ls\ncommand: ls | wc -l'],
      ['observation', '<returncode>0</returncode>\n7'],
      ['tool_call', 'bash\ncommand: submit'],
      ['observation', '7'],
    ]);
    expect([old, current, mini].map(({ task, metadata }) => [task.objective, metadata.success])).toEqual([
      ['Time zones are wrong. Fix it.', true],
      ['Fix app.py', false],
      ['Count the files.', true],
    ]);
    expect(mini.metadata.created_at).toBe('2026-01-01T00:00:00.500Z');
    expect(results.map(({ known }) => known)).toEqual(Array(3).fill({ success: true, confidence: false }));
  });
});

describe('swe-agent without a trajectory', () => {
  const turn = (rest) => [
    { role: 'user', content: 'Fix app.py', agent: 'main', ...rest },
    { role: 'assistant', content: 'x', thought: 'I look.', action: 'ls\n', agent: 'main', ...rest },
    { role: 'user', content: 'Error: no such folder', agent: 'main', ...rest },
    { role: 'assistant', content: 'Nothing to do.', thought: '', action: '', agent: 'main', ...rest },
    { role: 'user', content: 'Go on.', agent: 'main', ...rest },
  ];
  const system = { role: 'system', content: 'prompt', agent: 'main' };
  const steps = [
    ['thought', 'I look.'],
    ['tool_call', 'ls\ncommand: ls'],
    ['error_recovery', 'Error: no such folder'],
    ['thought', 'Nothing to do.'],
    ['observation', 'Go on.'],
  ];

  test.each([
    ['a run', { history: [system, ...turn()] }, { 'system message': 1 }],
    ['a demonstration', { history: [system, ...turn({ is_demo: true })] }, { 'system message': 1 }],
    ['a run after one', { history: [...turn({ is_demo: true }), ...turn()] }, { demonstration: 5 }],
    ['one that was killed', { history: turn(), trajectory: [], info: {} }, undefined],
  ])('the history of %s is the run', async (_, record, leftOut) => {
    const [{ trace, format, known }] = await read(record);
    expect([format, known.success]).toEqual(['swe-agent', false]);
    expect(trace.task.objective).toBe('Fix app.py');
    expect(stepsOf(trace)).toEqual(steps);
    expect(trace.metadata.imported.left_out).toEqual(leftOut);
  });
});

describe('otel', () => {
  test('spans become a trace for each trace id, in whatever order they come', async () => {
    const results = await read(streamOf('spans.jsonl'));
    expect(results.map(({ format, line, known }) => [format, line, known.success])).toEqual([
      ['otel', 1, true],
      ['otel', 2, true],
    ]);
    const [genai, inference] = results.map(({ trace }) => trace);
    expect(stepsOf(genai)).toEqual([
      ['thought', 'The tool knows.'],
      ['tool_call', 'get_weather\nlocation: Paris'],
      ['error_recovery', 'timeout'],
      ['error_recovery', 'get_weather\nlocation: Paris'],
      ['observation', 'rainy, 14 degrees'],
      ['thought', 'It rains in Paris.'],
    ]);
    expect(genai).toMatchObject({
      task: { objective: 'Weather in Paris?' },
      metadata: {
        ...{
          success: true,
          agent_id: 'Forecaster',
          framework: 'travel-agent',
          created_at: '2026-01-01T00:00:00.000Z',
        },
        imported: { model: 'm', spans: 6, left_out: { 'span without messages': 1 } },
      },
    });
    expect(genai.steps.map(({ latency_ms }) => latency_ms)).toEqual([
      undefined,
      1000,
      undefined,
      500,
      undefined,
      undefined,
    ]);
    expect(stepsOf(inference)).toEqual([
      ['tool_call', 'add\na: 2\nb: 3'],
      ['observation', '5'],
      ['thought', '5.'],
    ]);
    expect(inference).toMatchObject({ task: { objective: 'Add 2 and 3.' }, metadata: { success: false } });
  });

  test('what instrumentations of OpenAI and Anthropic have recorded has each step once', async () => {
    const traces = await tracesOf(streamOf('captured-spans.jsonl'));
    const said = [
      'I ask the tool.',
      'I ask the tool.',
      'The tool knows.',
      'I ask the tool.',
      'I ask the tool.',
    ];
    expect(traces.map((trace) => [trace.task.objective, stepsOf(trace)])).toEqual(
      said.map((thought) => [
        'Weather in Paris?',
        [
          ['thought', thought],
          ['tool_call', 'get_weather\nlocation: Paris'],
          ['observation', 'rainy, 14 degrees'],
          ['thought', 'It rains in Paris.'],
        ],
      ]),
    );
    for (const { metadata } of traces) {
      expect(metadata).toMatchObject({ framework: 'weather-agent', imported: { model: 'example-1' } });
    }
  });

  test('what Pydantic AI has recorded has each step once, though users give the results of tools', async () => {
    const traces = await tracesOf(streamOf('published/pydantic-ai.jsonl'));
    expect(traces.map((trace) => [trace.task.objective, stepsOf(trace)])).toEqual([
      [
        'What is the weather in Paris and what time is it?',
        [
          ['thought', 'Let me check both.'],
          ['tool_call', 'get_weather\ncity: Paris'],
          ['tool_call', 'get_time\nzone: UTC'],
          ['observation', 'sunny in Paris'],
          ['observation', '{"zone":"UTC","time":"12:00"}'],
          ['thought', 'It is sunny in Paris and 12:00 UTC.'],
        ],
      ],
      ['Thanks.', [['thought', 'Anytime.']]],
    ]);
    expect(traces[0].steps.map(({ latency_ms }) => latency_ms !== undefined)).toEqual([
      ...[false, true, true, false, false, false],
    ]);
  });

  test('what OpenAI Agents have recorded has each step once, though texts are written in two ways', async () => {
    const [trace] = await tracesOf(streamOf('published/openai-agents.jsonl'));
    expect(trace.task.objective).toBe('Where is order A1? I want a refund.');
    expect(stepsOf(trace)).toEqual([
      ['thought', 'Checking.'],
      ['tool_call', 'lookup_order\norder_id: A1'],
      ['observation', 'order A1: shipped'],
      ['tool_call', 'transfer_to_refunds'],
      ['observation', '{"assistant": "Refunds"}'],
      ['thought', 'Refund started for order A1.'],
    ]);
    expect(trace.metadata.imported.left_out).toEqual({
      'span without messages': 7,
      'system message': 2,
      'tool span without a name': 1,
    });
  });

  const attributes = (values) =>
    Object.entries(values).map(([key, value]) => ({ key, value: { stringValue: value } }));
  const batch = (...spans) => ({ resourceSpans: [{ scopeSpans: [{ spans }] }] });

  test('tools alone make a trace, where nothing of what was said is recorded', async () => {
    const tool = (name, start, status) => ({
      ...{ traceId: 't', startTimeUnixNano: `${start}`, endTimeUnixNano: `${start + 1}`, status },
      attributes: attributes({ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': name }),
    });
    const [trace] = await tracesOf(batch(tool('b', 2, { code: 2, message: 'broken' }), tool('a', 1, {})));
    expect(stepsOf(trace)).toEqual([
      ['tool_call', 'a'],
      ['tool_call', 'b'],
      ['error_recovery', 'broken'],
    ]);
  });

  test('spans of tools are of the calls with their ids, and else of the first that is left', async () => {
    const asked = ['a', 'b', 'c', 'b', undefined].map((id) => ({ type: 'tool_call', name: 'f', id }));
    const said = { 'gen_ai.output.messages': JSON.stringify([{ role: 'assistant', parts: asked }]) };
    // One with an id that nobody has called is of the call without one; those after the last call are calls of their own.
    const spans = ['b', undefined, 'x', 'c', undefined, undefined, undefined].map((id, at) => ({
      ...{ traceId: 't', startTimeUnixNano: `${at + 2}`, endTimeUnixNano: `${at + 2}` },
      attributes: attributes({
        ...{ 'gen_ai.operation.name': 'execute_tool', 'gen_ai.tool.name': 'f' },
        'gen_ai.tool.call.result': `result ${at}`,
        ...(id && { 'gen_ai.tool.call.id': id }),
      }),
    }));
    const first = { traceId: 't', startTimeUnixNano: '1', attributes: attributes(said) };
    const [trace] = await tracesOf(batch(first, ...spans));
    const results = [0, 1, 2, 3, 4, 'call', 5, 'call', 6];
    expect(trace.steps.map(({ content }) => content)).toEqual([
      ...Array(5).fill('f'),
      ...results.map((at) => (at === 'call' ? 'f' : `result ${at}`)),
    ]);
    expect(trace.metadata.imported.left_out).toBeUndefined();
  });

  test('times that are no times count as none', async () => {
    for (const time of ['9'.repeat(30), 'soon', null, {}]) {
      const span = { traceId: 't', startTimeUnixNano: time, attributes: attributes({ 'input.value': 'Hi' }) };
      const [trace] = await tracesOf(batch(span));
      expect(Math.abs(Date.now() - Date.parse(trace.metadata.created_at))).toBeLessThan(60_000);
    }
  });

  test('a message that is said twice is there twice, and once for each span that repeats it', async () => {
    const said = (role, content) => ({ role, parts: [{ type: 'text', content }] });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom('yes', 'no'), fc.constantFrom('go on', 'stop')), {
          minLength: 1,
          maxLength: 8,
        }),
        fc.boolean(),
        async (turns, isReversed) => {
          const history = [];
          const spans = turns.map(([answer, order], at) => {
            history.push(said('user', order));
            const input = JSON.stringify(history);
            const output = said('assistant', answer);
            history.push(output);
            const values = {
              'gen_ai.input.messages': input,
              'gen_ai.output.messages': JSON.stringify([{ ...output, finish_reason: 'stop' }]),
            };
            return { traceId: 't', startTimeUnixNano: `${at + 1}`, attributes: attributes(values) };
          });
          const [trace] = await tracesOf(batch(...(isReversed ? spans.reverse() : spans)));
          expect(trace.steps.map(({ content }) => content)).toEqual(
            history.slice(1).map(({ parts }) => parts[0].content),
          );
        },
      ),
      { numRuns: 50 },
    );
  });

  test('what a model is given again is read as if it were alone', async () => {
    const said = (content) => JSON.stringify({ role: 'user', content });
    const lists = [
      ...['[]', '[1]', '[12]', '[1 ]', '[1 ,2]', '[1,]', '[,1]', '["]"]', '["]","a"]', '{"a":[]}'],
      ...[`[${said('a')}]`, `[${said('a')}]x`, `[${said('a')},${said('b')}]`, `[${said('a')},]`],
      `[${said('ab')},${said('c')}]`,
    ];
    const span = (json, at) => ({
      ...{ traceId: 't', startTimeUnixNano: `${at + 1}` },
      attributes: attributes({ 'gen_ai.input.messages': json }),
    });
    const saidBy = async (...spans) =>
      (await read(batch(...spans))).flatMap(({ error, trace }) =>
        error
          ? error.code
          : [
              ...[trace.task.objective, ...trace.steps.map(({ content }) => content)].sort(),
              trace.metadata.imported.left_out,
            ],
      );
    for (const first of lists) {
      for (const second of lists) {
        // A list that has nothing in common comes between, so that it is not compared with the first.
        const [one, between, two] = [span(first, 0), span('[0]', 2), span(second, 1)];
        expect([first, second, await saidBy(one, two, between)]).toEqual([
          ...[first, second],
          await saidBy(one, between, two),
        ]);
      }
    }
  });

  test('attributes that are nested deeply, and spans without an id, cost an error', async () => {
    let value = { stringValue: 'x' };
    for (let depth = 0; depth < 10_000; depth++) value = { arrayValue: { values: [value] } };
    const good = { traceId: 't', attributes: attributes({ 'input.value': 'Hello' }) };
    const results = await read([batch({ traceId: 't', attributes: [{ key: 'k', value }] }), batch({}, good)]);
    expect(results.pop().trace.task.objective).toBe('Hello');
    expect(results.map(({ error }) => error.message)).toEqual(
      ['[0]', '[1]'].map(() =>
        expect.stringMatching(/^(it is nested too deeply|not otel: a span has no traceId)$/),
      ),
    );
  });
});

describe('what every format has in common', () => {
  const native = {
    '@context': 'https://openknowledgepulse.org/schema/v1',
    '@type': 'ReasoningTrace',
    id: 'kp:trace:1',
  };

  test('a trace stays as it is, in a mixture too', async () => {
    const chat = {
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: 'Hm' },
      ],
    };
    const results = await read([native, trajectory, chat].map((value) => JSON.stringify(value)).join('\n'));
    expect(results.map(({ format, line }) => [format, line])).toEqual([
      ['trace', 1],
      ['atif', 2],
      ['atif', 2],
      ['openai-chat', 3],
    ]);
    expect(results[0]).toMatchObject({ trace: native, known: { success: true, confidence: true } });
  });

  test('options go before the format', async () => {
    const [{ trace, known }] = await read(trajectory, {
      success: true,
      confidence: 0.75,
      domain: 'code',
      file: trajectoryFile,
    });
    expect(trace).toMatchObject({
      metadata: { success: true, task_domain: 'code' },
      outcome: { confidence: 0.75 },
    });
    expect(known).toEqual({ success: true, confidence: true });
  });

  test('the id is that of the trace, whenever it is read', async () => {
    const ids = async (value) => (await tracesOf(value)).map(({ id }) => id);
    const chat = (reply) => ({
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: reply },
      ],
    });
    const [first, second] = [await ids(chat('a')), await ids(chat('b'))];
    expect(await ids(chat('a'))).toEqual(first);
    expect(second).not.toEqual(first);
    expect(new Set(await ids(trajectory)).size).toBe(2);
  });

  test('bad records are named, and the rest is read', async () => {
    const lines = [
      '{"schema_version":"ATIF-v1.6"}',
      '{"messages":[{"role":"user","content":"a"},{"role":"ghost","content":"b"}]}',
      '{"nothing":1}',
      '{"messages":',
      '{"schema_version":"ATIF-v1.6","steps":[{"source":"cat","message":""}]}',
      '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}',
      // What stands for bytes that are not UTF-8 is UTF-8 itself.
      '{"messages":[{"role":"user","content":"\ufffd"},{"role":"assistant","content":"b"}]}',
    ];
    const bad = Buffer.concat([
      Buffer.from(`${lines.join('\n')}\n{"messages":"`),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}\n'),
    ]);
    const results = await read(bad);
    expect(results.map(({ error, trace }) => error?.message ?? trace.task.objective)).toEqual([
      'line 1: not atif: steps must be an array',
      'line 2: not openai-chat: messages[1]: a message has a role that is not known',
      expect.stringMatching(/^line 3: of no format that is known; they are trace, atif, /),
      expect.stringMatching(/^line 4: not JSON/),
      'line 5: not atif: steps[0].source must be system, user or agent',
      'a',
      '\ufffd',
      'line 8: not UTF-8',
    ]);
    expect(results[0].error).toMatchObject({ code: 'ERR_INVALID_RECORD' });
  });

  test('a format that is asked for is the only one', async () => {
    const [{ error }] = await read(trajectory, { format: 'openai-chat' });
    expect(error.message).toBe('not openai-chat: it has no messages, and no items; it looks like atif');
    const [other] = await read({ nothing: 1 }, { format: 'openai-chat' });
    expect(other.error.message).toBe('not openai-chat: it has no messages, and no items');
    const [native] = await read({ '@type': 'ReasoningTrace' }, { format: 'atif' });
    expect(native.error.message).toMatch(/; it looks like trace$/);
    const [broken] = await read({ ...trajectory, steps: 1 }, { format: 'atif' });
    expect(broken.error.message).toBe('not atif: steps must be an array');
  });

  test.each([
    ['a result that is JSON with an error', { content: '{"error":{"code":7}}' }, true],
    ['one with an exit code', { content: '{"stdout":"","exit_code":2}' }, true],
    ['one with the exit code 0', { content: '{"error":null,"exit_code":0}' }, false],
    ['a traceback', { content: 'Traceback (most recent call last):\n  File' }, true],
    ['an exception by its name', { content: 'ValueError: invalid literal' }, true],
    ['a text about errors', { content: 'No errors were found' }, false],
    ['a list of errors', { content: 'errors.log' }, false],
    ['one with a return code', { content: '<returncode>1</returncode>\n<output>' }, true],
    ['one with the return code 0', { content: '<returncode>0</returncode>\n<output>error' }, false],
  ])('%s is judged by its text', async (_, { content }, failed) => {
    const messages = [
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ id: '1', function: { name: 'run', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: '1', content },
    ];
    const [trace] = await tracesOf({ messages });
    expect(trace.steps[1].type).toBe(failed ? 'error_recovery' : 'observation');
  });

  test('only the first success after a failure repairs it, by the same tool', async () => {
    const act = (id, name, content) => [
      { role: 'assistant', content: '', tool_calls: [{ id, function: { name, arguments: '{}' } }] },
      { role: 'tool', tool_call_id: id, content },
    ];
    const messages = [
      ...act('1', 'a', 'Error: x'),
      ...act('2', 'b', 'ok'),
      ...act('3', 'a', 'Error: y'),
      ...act('4', 'a', 'ok'),
      ...act('5', 'a', 'ok'),
    ];
    const [trace] = await tracesOf({ messages });
    expect(trace.steps.map(({ type }) => type[0])).toEqual([
      't',
      'e',
      't',
      'o',
      't',
      'e',
      'e',
      'o',
      't',
      'o',
    ]);
  });

  test('whatever is changed in a record, it becomes traces that can be scored, or an error', async () => {
    const records = ['chat.jsonl', 'ai-sdk.jsonl', 'session.jsonl', 'runs.traj.jsonl', 'spans.jsonl']
      .flatMap((name) => fs.readFileSync(path.join(folder, name), 'utf8').trim().split('\n'))
      .concat(JSON.stringify(trajectory));
    const scorer = new Scorer({ embedder: null });
    const anything = fc.oneof(
      fc.constantFrom(
        null,
        '',
        0,
        -1,
        1e308,
        true,
        [],
        {},
        [null],
        [[]],
        '__proto__',
        { role: 'tool' },
        'user',
      ),
      fc.jsonValue({ maxDepth: 2 }),
    );
    /** Puts a value in place of the one that is counted, and counts on. */
    const replaced = (value, counter, by) => {
      if (counter.left-- === 0) return by;
      if (Array.isArray(value)) return value.map((each) => replaced(each, counter, by));
      if (value === null || typeof value !== 'object') return value;
      return Object.fromEntries(
        Object.entries(value).map(([name, each]) => [name, replaced(each, counter, by)]),
      );
    };
    const formats = fc.constantFrom(undefined, 'atif', 'openai-chat', 'claude-code', 'otel', 'swe-agent');
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...records), fc.nat(150), anything), {
          minLength: 1,
          maxLength: 4,
        }),
        formats,
        async (changes, format) => {
          const values = changes.map(([record, left, by]) => replaced(JSON.parse(record), { left }, by));
          for (const { error, trace, known } of await read(values, { format })) {
            if (error) {
              expect(error.code).toBe('ERR_INVALID_RECORD');
              // The message says what is wrong with the record, not with the reader.
              expect(error.message).not.toMatch(/undefined|is not a function|not iterable|Cannot/);
            } else if (known) {
              expect(await scorer.evaluateValue(JSON.parse(JSON.stringify(trace)))).toBeGreaterThanOrEqual(0);
            }
          }
        },
      ),
      { numRuns: 700 },
    );
  });

  describe.each([
    [
      'atif',
      (content, ids) => [
        {
          ...{ schema_version: 'ATIF-v1.8', agent: {} },
          steps: [
            { source: 'user', message: content },
            ...ids.map((id) => ({
              ...{ source: 'agent', message: '' },
              tool_calls: [{ tool_call_id: id, function_name: 'f', arguments: {} }],
              observation: { results: [{ source_call_id: id, content: 'ok' }] },
            })),
          ],
        },
      ],
    ],
    [
      'openai-chat',
      (content, ids) => [
        {
          messages: [
            { role: 'user', content },
            ...ids.flatMap((id) => [
              { role: 'assistant', content: '', tool_calls: [{ id, function: { name: 'f' } }] },
              { role: 'tool', tool_call_id: id, content: 'ok' },
            ]),
          ],
        },
      ],
    ],
    [
      'claude-code',
      (content, ids, session) =>
        [
          ['user', content],
          ...ids.flatMap((id) => [
            ['assistant', [{ type: 'tool_use', id, name: 'f', input: {} }]],
            ['user', [{ type: 'tool_result', tool_use_id: id, content: 'ok' }]],
          ]),
        ].map(([type, content]) => ({ type, sessionId: session, message: { role: type, content } })),
    ],
    [
      'swe-agent',
      (content, ids) => [
        {
          ...{ environment: 'e', info: {}, history: [{ role: 'user', content }] },
          trajectory: [...ids.map(() => 'f'), ''].map((action) => ({ action, observation: action && 'ok' })),
        },
      ],
    ],
    [
      'otel',
      (content, ids, session) => {
        const messages = [
          { role: 'user', content },
          ...ids.flatMap((id) => [
            { role: 'assistant', tool_calls: [{ id, function: { name: 'f' } }] },
            { role: 'tool', tool_call_id: id, content: 'ok' },
          ]),
        ];
        // What is nested deeply cannot be written but by hand.
        const json =
          typeof content === 'string'
            ? JSON.stringify(messages)
            : `[{"role":"user","content":${'['.repeat(50_000)}${']'.repeat(50_000)}}]`;
        const attribute = { key: 'gen_ai.input.messages', value: { stringValue: json } };
        return [
          { resourceSpans: [{ scopeSpans: [{ spans: [{ traceId: session, attributes: [attribute] }] }] }] },
        ];
      },
    ],
  ])('hostile records of %s', (format, make) => {
    test('that are nested deeply cost an error, and the rest is read', async () => {
      let deep = [];
      for (let depth = 0; depth < 50_000; depth++) deep = [deep];
      const values = [...make(deep, [], 'a'), ...make('Hello', [], 'b')];
      const found = await read(values);
      const told = found.map(({ error, trace }) => error?.message ?? trace.task.objective).sort();
      // JSON in an attribute of a span that cannot be read is text.
      const deepest =
        format === 'otel' ? expect.stringMatching(/^\[{"role":"user"/) : 'it is nested too deeply';
      expect(told).toEqual(['Hello', deepest]);
      expect(found).toHaveLength(2);
    });

    test('that are large, or use an id again and again, have every step', async () => {
      const content = 'x'.repeat(2 ** 21);
      const [{ trace }, ...others] = await read(make(content, Array(3000).fill('same'), 'a'));
      expect(others).toEqual([]);
      expect(trace.task.objective.length).toBe(content.length);
      expect(trace.steps.map(({ type, content }) => `${type} ${content.split('\n')[0]}`)).toEqual(
        Array(3000).fill(['tool_call f', 'observation ok']).flat(),
      );
      expect(trace.metadata.imported.left_out ?? {}).not.toHaveProperty('call without a result');
    });
  });

  test('hostile values cost an error at most', async () => {
    let deep = 'x';
    for (let depth = 0; depth < 200_000; depth++) deep = [deep];
    const circle = { messages: [{ role: 'user', content: {} }] };
    circle.messages[0].content.self = circle;
    const thrower = {
      get messages() {
        throw new Error('no');
      },
    };
    const revoked = Proxy.revocable({}, {});
    revoked.revoke();
    const ids = {
      messages: Array.from({ length: 20_000 }, () => ({
        role: 'assistant',
        tool_calls: [{ id: 'same', function: { name: 'f' } }],
      })),
    };
    const results = await read([
      { messages: [{ role: 'user', content: deep }] },
      circle,
      thrower,
      revoked.proxy,
      ids,
    ]);
    expect(results.map(({ error, trace }) => error?.code ?? trace.steps.length)).toEqual([
      ...Array(4).fill('ERR_INVALID_RECORD'),
      20_000,
    ]);
  });

  test.each([
    [{ format: 'csv' }, RangeError],
    [{ success: 'yes' }, TypeError],
    [{ confidence: 2 }, RangeError],
    [{ from: 'atif' }, TypeError],
    ['atif', TypeError],
  ])('options are checked at once: %j', (options, Class) => {
    expect(() => toTraces('', options)).toThrow(Class);
    expect(() => toTraces('', options)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }));
  });

  test('bytes and chunks of any kind are read, and a promise is to be awaited', async () => {
    const text = '{"messages":[{"role":"user","content":"Hello"}]}';
    const bytes = new TextEncoder().encode(text);
    function* chunks() {
      yield text.slice(0, 9);
      yield bytes.subarray(9);
    }
    for (const input of [text, bytes, bytes.buffer, chunks(), new Set([text]), new Blob([text]).stream()]) {
      expect((await tracesOf(input)).map(({ task }) => task.objective)).toEqual(['Hello']);
    }
    await expect(toTraces(Promise.resolve(text)).next()).rejects.toMatchObject({
      code: 'ERR_INVALID_INPUT',
      message: expect.stringMatching(/await it first/),
    });
  });

  test('a stream is closed when no more of it is wanted', async () => {
    const text = '{"messages":[{"role":"user","content":"Hello"}]}';
    for (const chunk of [`${text}\n`, `[${text},`]) {
      let isClosed = false;
      const chunks = async function* () {
        try {
          for (;;) yield chunk;
        } finally {
          isClosed = true;
        }
      };
      for await (const { trace } of toTraces(chunks())) {
        expect(trace.task.objective).toBe('Hello');
        break;
      }
      expect(isClosed).toBe(true);
    }
    const stream = streamOf('session.jsonl');
    for await (const { trace } of toTraces(stream)) if (trace) break;
    expect(stream.destroyed).toBe(true);
  });

  test('what a stream throws is thrown as it is', async () => {
    const failure = new Error('the disk is on fire');
    async function* broken() {
      yield '{"messages":[{"role":"user","content":"Hello"}]}\n';
      throw failure;
    }
    const reading = toTraces(broken());
    expect((await reading.next()).value.trace.task.objective).toBe('Hello');
    await expect(reading.next()).rejects.toBe(failure);
    async function* numbers() {
      yield 1;
    }
    await expect(toTraces(numbers()).next()).rejects.toMatchObject({ code: 'ERR_INVALID_INPUT' });
  });
});
