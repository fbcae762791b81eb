'use strict';

const fc = require('fast-check');

// `npm test` draws the same values each time.
const { KNOWLEDGEPULSE_TEST_SEED: seed } = process.env;
if (seed) fc.configureGlobal({ seed: Number(seed) });

const words = [
  ...['the', 'invoice', 'Retry', 'ERROR', 'timeout', 'flight', 'patient', 'dose', 'refund'],
  ...['stack trace', 'x', 'naïve', 'Straße', 'ΟΔΥΣΣΕΥΣ', 'İstanbul', 'привет', 'مرحبا', 'नमस्ते'],
  ...['你好世界', 'ありがとう', '한국어', 'ไทย', '👩‍💻', '🇩🇪', 'e\u0301', '\u200b', '\u00ad', '\ufeff'],
  ...['[MASK]', '[SEP]', '#tag', 'a_b', 'https://x.y/z?q=1', '\t', '\n', '—', '…', '½', 'ﬁ', '𝒳'],
  ...['\ud800', '\udc00', '\u0000', '\u00a0', '\u3000'],
];

/** Text in which every rule of the tokenizer occurs; short, because each is embedded twice. */
const text = fc
  .array(
    fc.oneof(
      { arbitrary: fc.constantFrom(...words), weight: 4 },
      fc.string({ unit: 'grapheme', maxLength: 12 }),
    ),
    { maxLength: 25 },
  )
  .map((parts) => parts.join(' '));

const step = fc.record(
  {
    step_id: fc.nat(),
    type: fc.oneof(
      { arbitrary: fc.constantFrom('thought', 'tool_call', 'observation', 'error_recovery'), weight: 6 },
      fc.string(),
    ),
    content: fc.option(text, { nil: undefined }),
    tool: fc.option(
      fc.record({ name: fc.oneof(fc.constantFrom('search', 'read_file', 'sql'), fc.string()) }),
      { nil: undefined },
    ),
    latency_ms: fc.nat(),
  },
  { requiredKeys: ['step_id', 'type'] },
);

/** A random trace within the types; `content` makes the texts of its steps. */
const trace = fc
  .record({
    objective: text,
    steps: fc.array(step, { maxLength: 14 }),
    domain: fc.oneof(
      fc.constantFrom('default', 'finance', 'code', 'medical', 'customer_service'),
      fc.constantFrom('astronomy', '', '__proto__', 'constructor', 'toString', 'Finance'),
    ),
    success: fc.boolean(),
    confidence: fc.oneof(fc.double({ min: 0, max: 1, noNaN: true }), fc.constantFrom(0, 1)),
  })
  .map((parts) => require('./make-trace.js').makeTrace(parts));

module.exports = { text, trace };
