// Traces that are valid but for what was done to them.

import { createRequire } from 'node:module';

import fc from 'fast-check';

import { revoked } from '../support/hostile.js';
import { texts, thrown, value } from './values.mjs';

const { makeTrace } = createRequire(import.meta.url)('../support/make-trace.js');

const DOMAINS = ['code', 'finance', 'medical', 'customer_service', 'astronomy', '__proto__'];
const TYPES = ['thought', 'tool_call', 'observation', 'error_recovery', 'reflection'];

/** Valid traces of every shape that scores differently. */
export const templates = Array.from({ length: 24 }, (_, index) =>
  makeTrace({
    objective: texts[index % texts.length],
    domain: DOMAINS[index % DOMAINS.length],
    success: index % 3 > 0,
    confidence: (index % 8) / 7,
    steps: Array.from({ length: (index * 3) % 7 }, (_, step) => ({
      step_id: step,
      type: TYPES[(index + step) % TYPES.length],
      content: (index + step) % 4 === 0 ? undefined : texts[(index * 5 + step) % 11],
      ...(step % 2 === 1 && { tool: { name: `tool ${(index + step) % 3}` } }),
      input: { nested: [1, { deep: 'unread' }] },
    })),
  }),
);

/** Where something is done; numbers are steps, counted from the last. */
const paths = fc.constantFrom(
  ...['task', 'task.objective', 'steps', 'steps.0', 'steps.0.type', 'steps.0.content', 'steps.0.tool'],
  ...['steps.0.tool.name', 'metadata', 'metadata.success', 'metadata.task_domain', 'outcome'],
  ...['outcome.confidence', 'id', 'steps.0.input', '__proto__', 'unheard_of', 'toJSON'],
);

/** What is done to the property `key` of `holder`; `value` makes a value, `other` calls the package. */
const operations = {
  set: ({ holder, key, value }) => {
    holder[key] = value();
  },
  delete: ({ holder, key }) => {
    delete holder[key];
  },
  'get by throwing': ({ holder, key, index }) => {
    define(holder, key, () => {
      throw thrown[index % thrown.length];
    });
  },
  'get another value each time': ({ holder, key, value }) => {
    const first = holder[key];
    let reads = 0;
    define(holder, key, () => (reads++ % 2 === 0 ? first : value()));
  },
  'get by calling the package': ({ holder, key, other }) => {
    const first = holder[key];
    define(holder, key, () => {
      other();
      return first;
    });
  },
  'get by spoiling the rest': ({ holder, key, value }) => {
    const first = holder[key];
    define(holder, key, () => {
      for (const name of Object.keys(holder)) if (name !== key) holder[name] = value();
      return first;
    });
  },
  'wrap in a proxy': ({ holder, key }) => {
    if (isObject(holder[key])) holder[key] = new Proxy(holder[key], {});
  },
  'wrap in a proxy that throws': ({ holder, key, index }) => {
    if (!isObject(holder[key])) return;
    let reads = 0;
    const get = (target, name, receiver) => {
      if (reads++ >= index % 4) throw thrown[index % thrown.length];
      return Reflect.get(target, name, receiver);
    };
    holder[key] = new Proxy(holder[key], { get });
  },
  revoke: ({ holder, key }) => {
    if (isObject(holder[key])) holder[key] = revoked(holder[key]);
  },
  freeze: ({ holder, key }) => {
    // Only what is the trace's own: `__proto__` is everyone's.
    if (Object.hasOwn(holder, key)) Object.freeze(holder[key]);
  },
  'take its prototype away': ({ holder, key }) => {
    if (isObject(holder[key])) Object.setPrototypeOf(holder[key], null);
  },
  'give it a hostile prototype': ({ holder, key, value }) => {
    const prototype = value();
    if (isObject(holder[key]) && isObject(prototype)) Object.setPrototypeOf(holder[key], prototype);
  },
  'make it inherited': ({ holder, key }) => {
    if (isObject(holder[key]) && !Array.isArray(holder[key])) holder[key] = Object.create(holder[key]);
  },
  'point it to its holder': ({ holder, key }) => {
    holder[key] = holder;
  },
  'change its length': ({ holder, key, index }) => {
    if (Array.isArray(holder[key])) holder[key].length = [0, index, 2 ** 32 - 1][index % 3];
  },
  'repeat it': ({ holder, key, index }) => {
    const steps = holder[key];
    const times = index === 0 ? 5000 : index;
    if (Array.isArray(steps) && steps.length * times <= 50_000) holder[key] = Array(times).fill(steps).flat();
  },
};

/** A trace: `describe()` says what was done, and `make(other)` makes it; unspoiled ones must get a score. */
export const trace = fc
  .record({
    template: fc.nat({ max: templates.length - 1 }),
    changes: fc.oneof(
      { weight: 1, arbitrary: fc.constant([]) },
      {
        weight: 4,
        arbitrary: fc.array(
          fc.record({
            path: paths,
            operation: fc.constantFrom(...Object.keys(operations)),
            value,
            index: fc.nat({ max: 60 }),
          }),
          { minLength: 1, maxLength: 3 },
        ),
      },
    ),
    instead: fc.oneof({ weight: 19, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value }),
  })
  .map(({ template, changes, instead }) => ({
    isValid: changes.length === 0 && instead === null,
    describe: () =>
      instead?.name ??
      [
        `template ${template}`,
        ...changes.map(
          ({ path, operation, value, index }) => `${path}: ${operation} (${value.name}, ${index})`,
        ),
      ].join('; '),
    make: (other) => {
      if (instead !== null) return instead.make();
      const made = structuredClone(templates[template]);
      for (const change of changes) apply(made, change, other);
      return made;
    },
  }));

function apply(trace, { path, operation, value, index }, other) {
  const keys = path.split('.');
  const key = keys.pop();
  // An earlier change may have made this one impossible, or have it throw.
  try {
    let holder = trace;
    for (const name of keys) holder = holder[name];
    if (isObject(holder)) operations[operation]({ holder, key, value: value.make, index, other });
  } catch {}
}

function define(holder, key, get) {
  Object.defineProperty(holder, key, { get, enumerable: true, configurable: true });
}

function isObject(value) {
  return typeof value === 'object' && value !== null;
}
