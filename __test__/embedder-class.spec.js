'use strict';

// Texts to embeddings, by themselves.

const { Embedder, _getLocalCache } = require('..');
const { OracleEmbedder } = require('./oracle/embedder.js');
const { claiming, lengths, revoked, throwingProxy } = require('./support/hostile.js');
const { modelDirectory } = require('./support/paths.js');
const { rejectionOf } = require('./support/refusals.js');
const { runForResult } = require('./support/run-script.js');

describe('Embedder', () => {
  const embedder = new Embedder();

  test('embeds as the SDK does', async () => {
    const oracle = new OracleEmbedder(modelDirectory);
    try {
      const others = ['', 'naïve [MASK] 你好', 'word '.repeat(600), '\ud800 lone'];
      for (const text of ['This is an example sentence', ...others]) {
        const [ours, theirs] = [await embedder.embed(text), await oracle.embed(text)];
        expect(ours).toBeInstanceOf(Float32Array);
        expect(ours).toHaveLength(embedder.dimensions);
        expect(Math.hypot(...ours)).toBeCloseTo(1, 6);
        for (const [index, component] of ours.entries()) {
          expect(Math.abs(component - theirs[index])).toBeLessThan(1e-5);
        }
      }
    } finally {
      await oracle.close();
    }
    // As published with the model.
    expect((await embedder.embed('This is an example sentence'))[0]).toBeCloseTo(0.0676569, 6);
  });

  test('has no memory: each call gives an array of its own', async () => {
    const { size } = _getLocalCache();
    const [first, second] = [await embedder.embed('twice'), await embedder.embed('twice')];
    expect(first).toEqual(second);
    first.fill(0);
    expect(await embedder.embed('twice')).toEqual(second);
    expect(_getLocalCache().size).toBe(size);
  });

  test('a batch is one text after another, to the bit', async () => {
    const texts = Array.from({ length: 150 }, (_, at) => `text ${at} ${'and more '.repeat(at % 20)}`);
    const progress = [];
    const onProgress = ({ done, total }) => progress.push([done, total]);
    const batch = await embedder.embedBatch(texts, { onProgress });
    expect(batch).toHaveLength(150);
    for (const index of [0, 1, 63, 64, 149]) expect(batch[index]).toEqual(await embedder.embed(texts[index]));
    expect(progress).toEqual(texts.map((_, index) => [index + 1, 150]));
    expect(await embedder.embedBatch([])).toEqual([]);
  });

  test.each([
    ['nothing', undefined, 'text must be a string, got undefined'],
    ['null', null, 'text must be a string, got null'],
    ['a number', 7, 'text must be a string, got number'],
    ['a string object', Object('text'), 'text must be a string, got object'],
  ])('refuses %s', async (_, text, message) => {
    const error = await embedder.embed(text).catch((reason) => reason);
    expect(error).toBeInstanceOf(TypeError);
    expect(error).toMatchObject({ code: 'ERR_INVALID_TEXT', message });
  });

  test.each([
    ['a text', 'text', ' must be an array'],
    ['a number in it', ['a', 7], '[1] must be a string, got number'],
    // biome-ignore lint/suspicious/noSparseArray: a hole is what is tested
    ['a hole', ['a', , 'b'], '[1] must be a string, got undefined'],
    ['a revoked proxy', revoked([]), ' must be an array'],
    ['a getter that throws', throwingProxy(['a'], 'thrown', '0'), '[0] could not be read: it threw'],
    ...lengths.map(([length, Class, expected]) => [
      ...['a wrong length', claiming(['a'], length), `.length must be ${expected}`, Class],
    ]),
  ])('embedBatch refuses %s', async (...row) => {
    const [, texts, message, Class = TypeError] = row;
    const error = await rejectionOf(embedder.embedBatch(texts));
    expect(error).toBeInstanceOf(Class);
    expect(error).toMatchObject({ code: 'ERR_INVALID_TEXT', message: `texts${message}` });
  });

  test('a batch of nothing is aborted like another', async () => {
    const signal = AbortSignal.abort('enough');
    expect(await embedder.embedBatch([], { signal }).catch((reason) => reason)).toBe('enough');
  });

  test('rejects where there is no model, with the reason', async () => {
    const { result } = await runForResult(
      `
      const embedder = new kp.Embedder();
      const of = (promise) => promise.then(() => null, ({ name, code, message }) => ({ name, code, message }));
      console.log(JSON.stringify([await of(embedder.embed('text')), await of(embedder.embedBatch(['a', 'b']))]));
    `,
      { env: { KNOWLEDGEPULSE_MODEL_DIR: '/nowhere' } },
    );
    for (const { name, code, message } of result) {
      expect({ name, code }).toEqual({ name: 'Error', code: 'ERR_MODEL_NOT_FOUND' });
      expect(message).toContain('/nowhere');
    }
  });
});
