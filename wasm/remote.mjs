// The messages between the instance on the caller's thread, which compares and scores, and the one in a worker, which embeds.

/**
 * @typedef {typeof import('../lib/binding.js')} Binding
 * @typedef {import('../lib/binding.js').EmbedderOptions} EmbedderOptions
 * @typedef {import('../lib/binding.js').NativeEmbedderStatus} NativeEmbedderStatus
 */

/** @typedef {{ number?: number, text: string }} Task */
/** @typedef {{ status: NativeEmbedderStatus, warn: boolean }} Loaded */
/** @typedef {{ vector: Float32Array, tokens: number, truncated: boolean }} Embedding */
/** @typedef {{ code: string, message: string }} Failure */

/**
 * What only the addon for WebAssembly has: the two ends of src/binding/remote.rs.
 *
 * @typedef {object} Ends
 * @property {(post: (task: Task) => void) => void} connectEmbedder
 * @property {(loaded: Loaded) => void} loadedElsewhere
 * @property {(number: number, embedding?: Embedding, failure?: Failure) => void} embeddedElsewhere
 * @property {(options: EmbedderOptions) => Loaded} loadHere
 * @property {(text: string) => Embedding} embedHere
 */

/** @typedef {Binding & Ends} Addon */

/** @typedef {{ load: EmbedderOptions } | { number: number, text: string }} Question */
/** @typedef {{ loaded: Loaded } | { number: number, embedding?: Embedding, failure?: Failure }} Answer */

/**
 * A worker of either kind of platform. `hold` says whether it keeps the process going.
 *
 * @typedef {object} Post
 * @property {(question: Question) => void} send
 * @property {(holds: boolean) => void} hold
 */

/** @typedef {(onAnswer: (answer: Answer) => void, onEnd: (reason: string) => void) => Post} Start */

const NOTHING = new Uint8Array();

/**
 * The addon with an embedder that runs in a worker, which is started when it is first needed.
 *
 * @param {Addon} addon
 * @param {Start} start
 * @returns {Binding}
 */
export function connect(addon, start) {
  /** @type {EmbedderOptions | undefined} */
  let options;
  /** @type {Post | undefined} */
  let worker;
  /** Why there is no worker any more. @type {string | undefined} */
  let ended;
  /** The numbers of the questions that were not answered yet; -1 is loading. @type {Set<number>} */
  const open = new Set();
  const LOADING = -1;

  /** @param {number} number */
  const close = (number) => {
    open.delete(number);
    if (open.size === 0) worker?.hold(false);
  };
  /** @param {Answer} answer */
  const onAnswer = (answer) => {
    if ('loaded' in answer) {
      close(LOADING);
      addon.loadedElsewhere(answer.loaded);
    } else {
      close(answer.number);
      addon.embeddedElsewhere(answer.number, answer.embedding, answer.failure);
    }
  };
  /** @param {string} reason */
  const onEnd = (reason) => {
    ended = `the worker of the embedder has ended: ${reason}`;
    const lost = [...open];
    open.clear();
    for (const number of lost) fail(number, ended);
  };
  /** @param {number} number @param {string} message */
  const fail = (number, message) => {
    const failure = { code: 'ERR_INTERNAL', message };
    if (number === LOADING) addon.loadedElsewhere({ status: failedStatus(failure), warn: true });
    else addon.embeddedElsewhere(number, undefined, failure);
  };

  addon.connectEmbedder(({ number = LOADING, text }) => {
    if (ended !== undefined) return fail(number, ended);
    worker ??= start(onAnswer, onEnd);
    if (open.size === 0) worker.hold(true);
    open.add(number);
    worker.send(number === LOADING ? { load: options ?? NO_OPTIONS } : { number, text });
    if (number === LOADING) options = undefined;
  });
  return {
    ...addon,
    configure: (given) => {
      // A model in memory goes to the worker alone.
      const isFirst = addon.configure({
        ...given,
        weights: given.weights && NOTHING,
        tokenizer: given.tokenizer && NOTHING,
      });
      if (isFirst) options = given;
      return isFirst;
    },
  };
}

/** @type {EmbedderOptions} */
const NO_OPTIONS = { runtimePackaged: false, modelConfigured: false, runtimeConfigured: false };

/**
 * @param {Failure} failure
 * @returns {NativeEmbedderStatus}
 */
function failedStatus({ code, message }) {
  return {
    available: false,
    code,
    reason: message,
    modelDirectory: null,
    model: null,
    modelSha256: null,
    dtype: null,
    dimensions: null,
    engine: 'builtin',
    kernel: null,
    runtimePath: null,
    runtimeVersion: null,
    threads: 1,
  };
}

/**
 * What the instance in the worker answers.
 *
 * @param {Addon} addon
 * @param {Question} question
 * @returns {Answer}
 */
export function answer(addon, question) {
  if ('load' in question) return { loaded: addon.loadHere(question.load) };
  const { number, text } = question;
  try {
    return { number, embedding: addon.embedHere(text) };
  } catch (thrown) {
    const error = /** @type {Error & { code?: string }} */ (thrown);
    // After a trap the instance cannot be used any more.
    if (error instanceof WebAssembly.RuntimeError || error.code === undefined) throw error;
    return { number, failure: { code: error.code, message: error.message } };
  }
}
