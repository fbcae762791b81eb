'use strict';

// Signals of calls that take long: they reject with the reason, have no effect, and leave no listener.

const fs = require('node:fs');
const { getEventListeners } = require('node:events');
const path = require('node:path');

const { TraceMemory, clean, embed, select, share } = require('..');
const { makeTrace, makeTraces } = require('./support/make-trace.js');
const { rejectionOf } = require('./support/refusals.js');
const { scratchDirectory } = require('./support/scratch.js');

const directory = scratchDirectory('signals');
const file = path.join(directory, 'memory.safetensors');
const saved = path.join(directory, 'saved.safetensors');
const folder = path.join(directory, 'shared');
const memory = new TraceMemory({ method: 'lexical' });
let bytes;
beforeAll(async () => {
  await memory.add(makeTrace());
  await memory.save(file);
  bytes = await memory.toBytes();
});

/** Calls that can be cancelled until they end, and those that are done at once. */
const long = {
  clean: (options) => clean('mail ada@example.org '.repeat(1000), options),
  share: (options) => share(makeTraces(50), folder, options),
  embed: (options) => embed(['a text', 'another'], options),
  select: (options) => select(makeTraces(50), { count: 1, ...options }),
  'TraceMemory.load': (options) => TraceMemory.load(file, options),
  'TraceMemory.fromBytes': (options) => TraceMemory.fromBytes(bytes, options),
  save: (options) => memory.save(saved, options),
};
const short = {
  add: (options) => memory.add(makeTrace({ objective: 'Another' }), options),
  compare: (options) => memory.compare(makeTrace(), options),
  nearest: (options) => memory.nearest(makeTrace(), 1, options),
};

const listeners = (signal) => (process.versions.bun ? 0 : getEventListeners(signal, 'abort').length);

/** What calls have written. */
const written = () => [saved, folder].filter((path) => fs.existsSync(path));

test.each(Object.entries({ ...long, ...short }))(
  '%s with a signal that has aborted rejects with its reason, without an effect',
  async (_, call) => {
    expect(await rejectionOf(call({ signal: AbortSignal.abort('enough') }))).toBe('enough');
    expect(memory.size).toBe(1);
    expect(written()).toEqual([]);
  },
);

test.each(Object.entries(long))(
  '%s with a signal that aborts rejects with its reason, without an effect, and leaves no listener',
  async (_, call) => {
    const controller = new AbortController();
    const reply = rejectionOf(call({ signal: controller.signal }));
    controller.abort('enough');
    expect(await reply).toBe('enough');
    expect(listeners(controller.signal)).toBe(0);
    expect(written()).toEqual([]);
  },
);

test('calls with a signal that does not abort do what they do, and leave no listener', async () => {
  const { signal } = new AbortController();
  for (const call of Object.values({ ...long, ...short })) await call({ signal });
  expect(listeners(signal)).toBe(0);
  expect((await TraceMemory.load(saved)).size).toBe(1);
  expect(memory.size).toBe(2);
});
