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
 * @property {() => void} stop
 */

/** @typedef {(onAnswer: (answer: Answer) => void, onEnd: (reason: string) => void) => Post} Start */

const NOTHING = new Uint8Array();

/** What stands for the number of the question that loads the model for the first time. */
const LOADING = -1;

/**
 * The addon with an embedder that runs in a worker, which is started when it is first needed.
 *
 * A worker whose instance has trapped is not used again, because its memory may be damaged. The call that was computed there fails;
 * the others, and later ones, have another worker. For that the options are kept, a model in memory included.
 *
 * @param {Addon} addon
 * @param {Start} start
 * @returns {Binding}
 */
export function connect(addon, start) {
  let options = NO_OPTIONS;
  /** @type {Post | undefined} */
  let worker;
  /** The questions that were not answered yet, in the order in which the worker takes them. @type {Map<number, Question>} */
  const open = new Map();
  /** What became of the first loading. @type {NativeEmbedderStatus | undefined} */
  let first;

  /** @param {number} number @param {Question} question */
  const ask = (number, question) => {
    worker ??= begin();
    if (open.size === 0) worker.hold(true);
    open.set(number, question);
    worker.send(question);
  };
  const begin = () => {
    /** @type {Post} */
    const started = start(
      (answer) => {
        if (worker === started) onAnswer(answer);
      },
      (reason) => {
        if (worker === started) onEnd(`the worker of the embedder has ended: ${reason}`);
      },
    );
    // Its predecessor had the model; it takes the questions after this one.
    if (first !== undefined) started.send({ load: options });
    return started;
  };
  /** @param {number} number */
  const close = (number) => {
    open.delete(number);
    if (open.size === 0) worker?.hold(false);
  };
  /** @param {Answer} answer */
  const onAnswer = (answer) => {
    if (!('loaded' in answer)) {
      close(answer.number);
      addon.embeddedElsewhere(answer.number, answer.embedding, answer.failure);
    } else if (first === undefined) {
      first = answer.loaded.status;
      close(LOADING);
      addon.loadedElsewhere(answer.loaded);
    } else if (!isSameModel(answer.loaded.status, first)) {
      const { reason } = answer.loaded.status;
      onEnd(
        `after the worker of the embedder had ended, ${reason ?? 'there was another model in place of its own'}`,
      );
    }
  };
  /** @param {string} reason */
  const onEnd = (reason) => {
    worker?.stop();
    worker = undefined;
    const [lost, ...others] = open;
    open.clear();
    for (const [number, question] of others) ask(number, question);
    if (lost !== undefined) fail(lost[0], reason);
  };
  /** @param {number} number @param {string} message */
  const fail = (number, message) => {
    const failure = { code: 'ERR_INTERNAL', message };
    if (number !== LOADING) return addon.embeddedElsewhere(number, undefined, failure);
    first = failedStatus(failure);
    addon.loadedElsewhere({ status: first, warn: true });
  };

  addon.connectEmbedder(({ number = LOADING, text }) => {
    ask(number, number === LOADING ? { load: options } : { number, text });
  });
  return {
    ...addon,
    configure: (given) => {
      const { weights, tokenizer } = given;
      // The instance on this thread needs no model.
      const isFirst = addon.configure({
        ...given,
        weights: weights && NOTHING,
        tokenizer: tokenizer && NOTHING,
      });
      // Copied, because the caller may do with the bytes whatever it likes.
      if (isFirst) options = { ...given, weights: weights?.slice(), tokenizer: tokenizer?.slice() };
      return isFirst;
    },
  };
}

/** @param {NativeEmbedderStatus} a @param {NativeEmbedderStatus} b */
function isSameModel(a, b) {
  return a.available && a.modelSha256 === b.modelSha256 && a.kernel === b.kernel;
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
