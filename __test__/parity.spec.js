'use strict';

// evaluateValue against the SDK's way of scoring: the oracle's arithmetic, also on transformers.js's embeddings.

const path = require('node:path');

const fc = require('fast-check');

const { _getLocalCache, evaluateValue } = require('..');
const { largestDifference } = require('./oracle/difference.js');
const { OracleEmbedder } = require('./oracle/embedder.js');
const { scoreOf } = require('./oracle/score.js');
const arbitraries = require('./support/arbitraries.js');
const { makeTrace } = require('./support/make-trace.js');
const { modelDirectory, readTraces, root } = require('./support/paths.js');

const TOLERANCE = 1e-5;

let oracle;
beforeAll(() => {
  oracle = new OracleEmbedder(modelDirectory);
});
afterAll(() => oracle.close());

/** The score with an empty memory, where novelty is known to be 0.5. */
function evaluateAlone(trace) {
  _getLocalCache().clear();
  return evaluateValue(trace);
}

/** Steps of these types, each with a tool of the same name. */
const stepsOf = (...types) => types.map((type, step_id) => ({ step_id, type, tool: { name: type } }));

// The numbers of each rule are tested in crates/score (dimensions.rs, overrides.rs, weights.rs).
test('evaluateValue agrees with the reference within 1e-12, lone surrogates in types and tools included', async () => {
  const property = fc.asyncProperty(arbitraries.trace, async (trace) => {
    const difference = Math.abs((await evaluateAlone(trace)) - scoreOf(trace, 0.5));
    expect(difference).toBeLessThanOrEqual(1e-12);
  });
  const surrogates = [stepsOf('\ud800', '\ud801'), stepsOf('\ud800', '\ufffd')];
  await fc.assert(property, { numRuns: 300, examples: surrogates.map((steps) => [makeTrace({ steps })]) });
});

test('evaluateValue remembers a single thought, whose score is fixed', async () => {
  await evaluateAlone(makeTrace({ steps: [{ type: 'thought' }] }));
  expect(_getLocalCache().size).toBe(1);
});

test('evaluateValue remembers a thousand traces, and forgets the oldest', async () => {
  const cache = _getLocalCache();
  cache.clear();
  const axis = (index) => Float32Array.from({ length: 384 }, (_, i) => (i === index ? 1 : 0));
  cache.add(axis(0));
  for (let i = 1; i < 1000; i++) cache.add(axis(1));
  expect(cache.maxCosineSimilarity(axis(0))).toBe(1);
  await evaluateValue(makeTrace());
  expect(cache.size).toBe(1000);
  expect(cache.maxCosineSimilarity(axis(0))).toBeLessThan(0.5);
});

test('the example traces', async () => {
  const traces = readTraces(path.join(root, 'examples', 'traces.jsonl'));
  expect(traces.length).toBeGreaterThanOrEqual(20);
  expect(await largestDifference(oracle, traces)).toBeLessThanOrEqual(TOLERANCE);
});

test('random traces', async () => {
  const property = fc.asyncProperty(
    fc.array(arbitraries.trace, { minLength: 1, maxLength: 5 }),
    async (traces) => {
      expect(await largestDifference(oracle, traces)).toBeLessThanOrEqual(TOLERANCE);
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

test('fifty calls in flight score as one after another', async () => {
  const traces = Array.from({ length: 50 }, (_, index) =>
    makeTrace({ objective: `Task ${index % 7}: ${'look again '.repeat(index % 5)}`, confidence: index / 50 }),
  );
  _getLocalCache().clear();
  const inSequence = [];
  for (const trace of traces) inSequence.push(await evaluateValue(trace));
  _getLocalCache().clear();
  const settled = [];
  const inFlight = await Promise.all(
    traces.map(async (trace, index) => {
      const score = await evaluateValue(trace);
      settled.push(index);
      return score;
    }),
  );
  expect(inFlight).toEqual(inSequence);
  expect(settled).toEqual(traces.map((_, index) => index));
  expect(_getLocalCache().size).toBe(50);
});

describe('text edges', () => {
  /** The embedding of a text, read back from the memory through its similarities to the axes. */
  async function nativeEmbedding(objective) {
    const cache = _getLocalCache();
    cache.clear();
    await evaluateValue(makeTrace({ objective, steps: [] }));
    return Array.from({ length: 384 }, (_, axis) => {
      const unit = new Float32Array(384);
      unit[axis] = 1;
      return cache.maxCosineSimilarity(unit);
    });
  }

  async function expectSameEmbedding(text) {
    // A trace without steps adds a space to its objective.
    const { embedding, tokens } = await oracle.describe(`${text} `);
    const native = await nativeEmbedding(text);
    const largest = Math.max(...native.map((component, index) => Math.abs(component - embedding[index])));
    expect(largest).toBeLessThanOrEqual(2e-6);
    return tokens;
  }

  const countWords = (count) =>
    Array.from({ length: count }, (_, index) => ['alpha', 'run', 'seven'][index % 3]).join(' ');

  test.each([126, 127, 128, 129, 130, 254, 255, 256, 257, 510, 511, 512, 513, 514, 5000])(
    '%d tokens',
    async (tokens) => {
      expect(await expectSameEmbedding(countWords(tokens - 2))).toBe(Math.min(tokens, 512));
    },
  );

  const texts = {
    empty: '',
    'one space': ' ',
    'tabs and newlines only': '\t\n\r\n\t',
    'control characters only': '\u0000\u0001\u0007\u001b\u007f\u0085',
    Chinese: '请帮我重新安排下周的会议，并通知所有参与者。',
    'Chinese beyond the basic plane': '\u{20000}\u{20001} 中\u{2a6d6}文 \u{2f800}',
    Japanese: '東京タワーの予約をキャンセルしてください。ﾊﾝｶｸｶﾅ',
    Korean: '서울에서 부산까지 기차를 예약해 주세요',
    Arabic: 'أَعِدْ جَدْوَلَةَ الرِّحْلَةِ إِلَى الغَدِ، مِنْ فَضْلِكَ؟',
    Hebrew: 'בְּרֵאשִׁית בָּרָא אֱלֹהִים',
    Hindi: 'कृपया मेरी उड़ान बदल दें।',
    Thai: 'กรุณาเปลี่ยนเที่ยวบินของฉัน',
    'Greek with final sigmas': "Ο ΟΔΥΣΣΕΥΣ ΚΑΙ Ο ΑΣ. ΣΑΣ'Α ΣΑΣ",
    'Turkish dotted I': 'İSTANBUL ıİ I\u0307',
    German: 'Größe STRAẞE Maßnahmen',
    'ligatures and fractions': 'ﬁle ½ ² ™ Ⅷ',
    'emoji with joiners': '👩‍💻 👨‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪 ✌️',
    'combining marks': 'e\u0301 o\u0308\u0323 a\u0345\u0301 \u0301alone Z\u0351\u036b\u0343a\u0363l\u035bgo',
    'decomposed Hangul': '\u1112\u1161\u11ab\u1100\u1173\u11af',
    'marks that reorder': 'a\u302e\u0301\u{1d16d}\u{1d165}b',
    'zero width characters': 'zero\u200bwidth\u200cnon\u200djoiner\u2060word\ufeffmark so\u00adft',
    'unusual spaces': 'a\u00a0b\u2009c\u3000d\u2028e\u2029f\u000bg\u000ch\u1680i\u205fj\u180ek',
    'lone surrogates': 'a\ud800b \udfff \ud83d\ud83d\ude00 \ude00\ud83d',
    'replacement and private use': '\ufffd \ue000 \u{f0000} \u{10ffff}',
    'unassigned code points': '\u0378 \u{1fffe} x\u0378y',
    'special token literals': 'The [MASK] token, [SEP] and [CLS] [PAD] [UNK] ends.',
    'special token literals inside words': 'pre[MASK]post[SEP][SEP]x [mask] [MASK [MA\u200bSK] [[MASK]]',
    'punctuation of all kinds': '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~ ¡¿§¶«»‹›„“”–—…‰′″※‽⁂〜・。、「」',
    'symbols that are no punctuation': '€£¥©®°±×÷¬µ∞∑√≈≠≤≥←→↑↓■□▲△●○★☆♠♣♥♦',
    'a word of 100 characters': 'a'.repeat(100),
    'a word of 101 characters': 'a'.repeat(101),
    'words of 200 characters': `${'ab'.repeat(100)} and ${'é'.repeat(200)} end`,
    'accents counted after normalisation': 'e\u0301'.repeat(100),
    'many unknown words': '\u0e00 \u13a0\u13a1 \u{10330} \u{12000}'.repeat(40),
    'no spaces at all': 'lorem,ipsum;dolor/sit.amet-consectetur'.repeat(60),
    'a megabyte': 'The quick brown fox jumps over the lazy dog. '.repeat(23_000),
    'a megabyte of one word': 'a'.repeat(1_000_000),
    'a megabyte of ideographs': '数据处理系统'.repeat(60_000),
  };

  test.each(Object.entries(texts))('%s', async (_, text) => {
    await expectSameEmbedding(text);
  });

  test('random text', async () => {
    const anything = fc.oneof(arbitraries.text, fc.string({ unit: 'binary', maxLength: 80 }));
    // Characters that the engine's Unicode version does not know yet are left out: the oracle's own answer
    // for them depends on the version of Node.js.
    const known = anything.filter((text) => /^[\P{Cn}]*$/u.test(text));
    const property = fc.asyncProperty(known, async (text) => {
      await expectSameEmbedding(text);
    });
    await fc.assert(property, { numRuns: 150 });
  });
});
