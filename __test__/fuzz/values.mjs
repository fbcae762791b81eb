// Values that a caller should never pass, and traces that are valid but for what was done to them. Each is a function that makes it anew.

import fc from 'fast-check';

import { claiming, hostile, revoked, throwingGetter, throwingProxy } from '../support/hostile.js';
import { makeTrace } from '../support/make-trace.js';

/** What a getter or a trap may throw: not only errors. */
export const thrown = [new Error('on purpose'), undefined, null, 'a string', Symbol('thrown'), hostile];

/** A pool of texts, because each new one costs a run of the model. */
const texts = [
  ...['', 'retry', 'The log ends in a linker error.', '[MASK] [SEP] [CLS][PAD]', 'nul \u0000 and \u0007'],
  ...['naïve Straße ΟΔΥΣΣΕΥΣ İstanbul', 'привет नमस्ते 你好世界 한국어', '👩‍💻 🇩🇪 e\u0301 \u200b\ufeff'],
  ...['\ud800', '\udc00\ud800 lone', 'word '.repeat(700), 'x'.repeat(5000)],
];

/** Functions that return the values of an arbitrary. */
export const made = (arbitrary) => arbitrary.map((it) => () => it);
const leaves = [fc.constantFrom(...texts), fc.double(), fc.boolean(), fc.constant(null), fc.bigInt()];
const numbers = [Number.NaN, 1 / 0, -1 / 0, -0, -1, 0.5, 2 ** 53, Number.MIN_VALUE, 1 + Number.EPSILON];

/** Values that no generator of data makes. */
const MAKERS = [
  ...[...numbers, null, undefined, true, 2n ** 70n, Symbol('hostile')].map((it) => () => it),
  () => () => 'text',
  () => {
    const cycle = { type: 'thought' };
    return Object.assign(cycle, { self: cycle, steps: [cycle], task: cycle, tool: cycle });
  },
  () => throwingGetter([], '0', new Error('element')),
  ...[{}, [], () => {}].map((target) => () => revoked(target)),
  ...[2 ** 32 - 1, Number.NaN].map((length) => () => claiming([], length)),
  ...thrown.map((it) => () => throwingProxy([], it)),
];

/** Any value at all. */
export const value = fc.oneof(
  { weight: 200, arbitrary: fc.constantFrom(...MAKERS) },
  {
    weight: 80,
    arbitrary: made(
      fc.anything({
        values: leaves,
        maxKeys: 4,
        withBoxedValues: true,
        withDate: true,
        withMap: true,
        withNullPrototype: true,
        withSparseArray: true,
        withTypedArray: true,
      }),
    ),
  },
  { weight: 40, arbitrary: made(fc.constantFrom(...texts)) },
  { weight: 1, arbitrary: made(fc.constantFrom(...['слово ', '\ud800'].map((unit) => unit.repeat(5e5)))) },
);

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

/** Where something is done. */
const paths = fc.constantFrom(
  ...['task', 'task.objective', 'steps', 'steps.0', 'steps.0.type', 'steps.0.content', 'steps.0.tool'],
  ...['steps.0.tool.name', 'metadata', 'metadata.success', 'metadata.task_domain', 'outcome'],
  ...['outcome.confidence', 'id', 'steps.0.input', '__proto__', 'unheard_of', 'toJSON'],
);

const isList = (it) => Array.isArray(it);
const repeated = (steps, times) => (steps.length * times > 50_000 ? steps : Array(times).fill(steps).flat());

/** What an object or a list becomes. */
const REPLACED = [
  (it) => new Proxy(it, {}),
  (it, { reason }) => throwingProxy(it, reason),
  (it, { reason, index }) => throwingProxy(it, reason, ['type', '0', 'length', 'name'][index % 4]),
  revoked,
  // A getter of `__proto__` may give everyone's prototype.
  (it) => (it === Object.prototype ? it : Object.freeze(it)),
  (it) => Object.setPrototypeOf(it, null),
  (it, { value }) => Object.setPrototypeOf(it, Object(value())),
  (it) => (isList(it) ? it : Object.create(it)),
  (it, { index }) => (isList(it) ? Object.assign(it, { length: [0, index, 2 ** 32 - 1][index % 3] }) : it),
  (it, { index }) => (isList(it) ? repeated(it, index === 0 ? 5000 : index) : it),
].map((replace) => (holder, key, parts) => {
  // `__proto__` is everyone's.
  if (Object.hasOwn(holder, key) && Object(holder[key]) === holder[key])
    holder[key] = replace(holder[key], parts);
});

/** What the getter does that a property becomes. */
const READ = [
  (_first, { reason }) => {
    throw reason;
  },
  (first, { value, reads }) => (reads % 2 === 0 ? first : value()),
  (first, { other }) => {
    other();
    return first;
  },
  (first, { holder, key, value }) => {
    for (const name of Object.keys(holder)) if (name !== key) holder[name] = value();
    return first;
  },
].map((read) => (holder, key, parts) => {
  const first = holder[key];
  let reads = 0;
  const get = () => read(first, { ...parts, holder, key, reads: reads++ });
  Object.defineProperty(holder, key, { get, enumerable: true, configurable: true });
});

const OPERATIONS = [
  (holder, key, { value }) => Object.assign(holder, { [key]: value() }),
  (holder, key) => delete holder[key],
  (holder, key) => Object.assign(holder, { [key]: holder }),
  ...[...REPLACED, ...READ],
];

const change = fc.record({
  ...{ path: paths, operation: fc.constantFrom(...OPERATIONS), value },
  ...{ index: fc.nat({ max: 60 }), reason: fc.constantFrom(...thrown) },
});

/** Returns a template in which the changes were made; `other` calls the package while the trace is read. */
function spoiltTrace(template, changes, other) {
  const trace = structuredClone(template);
  for (const { path, operation, ...parts } of changes) {
    const keys = path.split('.');
    const key = keys.pop();
    // An earlier change may have made this one impossible, or have it throw.
    try {
      const holder = keys.reduce((it, name) => it[name], trace);
      if (typeof holder === 'object' && holder !== null) operation(holder, key, { ...parts, other });
    } catch {}
  }
  return trace;
}

/** A trace: `make(other)` makes it, and one that `isValid` must get a score. */
export const trace = fc.oneof(
  { weight: 1, arbitrary: value.map((make) => ({ isValid: false, make })) },
  {
    weight: 19,
    arbitrary: fc
      .tuple(
        fc.constantFrom(...templates),
        fc.oneof(fc.constant([]), { weight: 4, arbitrary: fc.array(change, { minLength: 1, maxLength: 3 }) }),
      )
      .map(([template, changes]) => ({
        isValid: changes.length === 0,
        make: (other) => spoiltTrace(template, changes, other),
      })),
  },
);
