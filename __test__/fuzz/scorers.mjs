// Calls of scorers and of the embedder, with options and signals that are good, slightly wrong or absurd.

import fc from 'fast-check';

import { trace } from './traces.mjs';
import { objectOf, option, plain, texts, thrown, value } from './values.mjs';

const SUM_TO_ONE = { complexity: 0.25, novelty: 0.25, toolDiversity: 0.25, outcomeConfidence: 0.25 };

/** When a signal aborts: after a number of turns of the microtask queue, or of the event loop. */
const moment = fc.record({
  queue: fc.constantFrom('before', 'at once', 'microtasks', 'turns', 'never'),
  turns: fc.nat({ max: 12 }),
  reason: fc.nat({ max: thrown.length }),
});

/** Signals, whose aborts reject with `thrown` or an `AbortError`. */
const signal = moment.map(({ queue, turns, reason }) => ({
  name: `a signal that aborts ${queue} (${turns}), reason ${reason}`,
  make() {
    const controller = new AbortController();
    const abort = () => controller.abort(thrown[reason]);
    if (queue === 'before') abort();
    else if (queue === 'microtasks') microtasks(turns).then(abort);
    else if (queue === 'turns') setTimeout(abort, turns);
    // The caller says when the call has been made.
    return { signal: controller.signal, made: queue === 'at once' ? abort : () => {} };
  },
}));

async function microtasks(count) {
  for (let turn = 0; turn < count; turn++) await null;
}

/** What is like a signal, but misbehaves. */
const imitations = {
  'without a reason': () => ({ aborted: true, addEventListener() {} }),
  'that calls back at once': () => ({ aborted: false, addEventListener: (_, listener) => listener() }),
  'that calls back twice': () => ({
    aborted: false,
    addEventListener(_, listener) {
      setImmediate(listener);
      setImmediate(listener);
    },
  }),
  'that cannot be listened to': () => ({
    aborted: false,
    addEventListener() {
      throw thrown[3];
    },
  }),
  'that can be read once': () => {
    let reads = 0;
    return {
      get aborted() {
        if (reads++ > 0) throw thrown[4];
        return false;
      },
      addEventListener() {},
    };
  },
  'whose reason throws': () => ({
    aborted: true,
    addEventListener() {},
    get reason() {
      throw thrown[0];
    },
  }),
};
const imitation = fc
  .constantFrom(...Object.keys(imitations))
  .map((name) => ({ name: `a signal ${name}`, make: () => ({ signal: imitations[name](), made() {} }) }));

const notASignal = value.map(({ name, make }) => ({
  name: `as a signal ${name}`,
  make: () => ({ signal: make(), made() {} }),
}));

/** What is done about progress. */
const progresses = {
  nothing: () => undefined,
  'a function': () => () => {},
  'a function that throws': () => () => {
    throw thrown[3];
  },
};

/** What a function that is called would do is its own affair. */
function noFunction(value) {
  return typeof value === 'function' ? null : value;
}

/** The options of a call besides its signal: others are refused. */
const OPTIONS_OF = { score: ['remember'], scoreAll: ['onProgress'] };

/** The options of a call of a `member`: `make` gives them, and what to do when it has been made. */
const callOptions = fc.oneof(
  { weight: 2, arbitrary: fc.constant({ name: 'no options', make: () => ({ made() {} }) }) },
  {
    weight: 1,
    arbitrary: value.map(({ name, make }) => ({ name, make: () => ({ options: make(), made() {} }) })),
  },
  {
    weight: 8,
    arbitrary: fc
      .record({
        signal: fc.oneof(
          { weight: 8, arbitrary: signal },
          { weight: 2, arbitrary: imitation },
          { weight: 1, arbitrary: notASignal },
        ),
        remember: option([undefined, true, false], 6),
        progress: fc.oneof(
          {
            weight: 8,
            arbitrary: fc
              .constantFrom(...Object.keys(progresses))
              .map((name) => ({ name, make: progresses[name] })),
          },
          { weight: 1, arbitrary: value.map(({ name, make }) => ({ name, make: () => noFunction(make()) })) },
        ),
      })
      .map(({ signal, remember, progress }) => ({
        name: `${signal.name}, remember ${remember.name}, onProgress ${progress.name}`,
        make(member) {
          const { signal: made, made: whenMade } = signal.make();
          const others = { remember: remember.make(), onProgress: progress.make() };
          const options = { signal: made };
          for (const name of OPTIONS_OF[member] ?? []) options[name] = others[name];
          return { options, made: whenMade };
        },
      })),
  },
);

const text = option(texts, 9);
const scorer = fc.nat({ max: 5 });

/** A call of a scorer (by its number) or of the embedder. */
const call = (weight, members, parts) => ({
  weight,
  arbitrary: fc.record({ member: fc.constantFrom(...members), ...parts, callOptions }),
});

export const scorerCall = fc.oneof(
  call(6, ['evaluateValue', 'score'], { scorer, trace }),
  call(2, ['scoreAll'], { scorer, traces: fc.array(trace, { maxLength: 6 }) }),
  call(3, ['embed'], { texts: fc.array(text, { maxLength: 4 }) }),
);

const weight = fc.oneof(value, plain(fc.double()));

const weights = fc.oneof(
  { weight: 2, arbitrary: fc.constant({ name: 'no weights', make: () => undefined }) },
  {
    weight: 6,
    arbitrary: fc.constant({ name: 'good weights', make: () => ({ code: SUM_TO_ONE, law: SUM_TO_ONE }) }),
  },
  { weight: 1, arbitrary: value },
  {
    weight: 6,
    arbitrary: fc
      .record({
        key: fc.oneof(
          fc.constantFrom('default', 'code', '__proto__', 'constructor', '', '\ud800'),
          fc.string(),
        ),
        dimension: fc.constantFrom(...Object.keys(SUM_TO_ONE), 'another'),
        weight,
      })
      .map(({ key, dimension, weight }) => ({
        name: `${JSON.stringify(key)}: ${dimension}: ${weight.name}`,
        make: () => ({ [key]: { ...SUM_TO_ONE, [dimension]: weight.make() } }),
      })),
  },
);

/** A memory by its number. */
const numbered = (name, max, choose) => ({
  weight: 6,
  arbitrary: fc
    .nat({ max })
    .map((index) => ({ name: `${name} ${index}`, make: (...lists) => choose(index, ...lists) })),
});

/** The options of a new scorer; `make` takes the caches and the memories of traces that there are. */
export const scorerOptions = fc.oneof(
  { weight: 1, arbitrary: value },
  {
    weight: 8,
    arbitrary: objectOf({
      memory: fc.oneof(
        numbered('cache', 6, (index, caches) => caches[index]?.[0]),
        numbered('memory', 4, (index, _, memories) => memories[index]),
        { weight: 1, arbitrary: value },
      ),
      embedder: option([undefined, null, 'default']),
      weights,
    }),
  },
);
