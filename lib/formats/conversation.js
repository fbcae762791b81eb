'use strict';

// Puts together what the spans of a trace tell, where each tells a part and repeats others: a call of a model has the messages that
// came before, the span of its agent has some of them again, and the call of a tool is in messages and in a span of its own.
//
// Messages are taken apart into items: a turn of the user, a thought, a call, a result. An item that is there already is not added
// again.

const { inputOf, stringOf, TraceBuilder } = require('./mapping.js');
const { addMessage, isMessage } = require('./messages.js');

/** @import { Call, Result } from './mapping.js' */

/** @typedef {'user' | 'message' | 'reasoning' | 'event' | 'system' | 'leaveOut'} TextKind what a `TraceBuilder` does with the text */

/** @typedef {{ kind: 'call', key?: string, call: Call & { args: Record<string, unknown> } }} CallItem */

/**
 * What a message says or does.
 *
 * @typedef {{ kind: TextKind, key?: string, text: string } | CallItem | { kind: 'result', key?: string, result: Result }} Item
 */

/**
 * An item in its place in the conversation.
 *
 * @typedef {object} Node
 * @property {Item} item
 * @property {Node} [before]
 * @property {Node} [after]
 * @property {Node} [call] of a result
 * @property {Node} [result] of a call
 * @property {boolean} [isSpoken] whether a message has this call
 * @property {boolean} [isTraced] whether a span of a tool has it
 * @property {number} [milliseconds] that the call took
 * @property {string} [number] by which its result refers to it
 */

/**
 * An item of a list of messages: whether the conversation has it for the first time, and whether that is a call of which it had only
 * the span of the tool.
 *
 * @typedef {{ node: Node, isNew: boolean, isHalf?: boolean }} Place
 */

/**
 * What a span of a tool tells.
 *
 * @typedef {object} ToolSpan
 * @property {string} [id] of the call
 * @property {unknown} name
 * @property {unknown} args
 * @property {unknown} content of the result
 * @property {boolean} [failed]
 * @property {number} [milliseconds]
 */

/** Takes a message apart: notes what `addMessage` finds, instead of making steps of it. */
class Recorder extends TraceBuilder {
  /** @type {Item[]} */
  #items = [];

  /**
   * @param {unknown} message
   * @returns {readonly Item[]}
   */
  itemsOf(message) {
    this.#items = [];
    try {
      if (!isMessage(message)) throw new TypeError('it is no message');
      addMessage(this, message);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      const key = `malformed\n${JSON.stringify(message)}`;
      this.#items = [{ kind: 'leaveOut', key, text: 'malformed message' }];
    }
    return this.#items;
  }

  /**
   * @param {TextKind} kind
   * @param {string} text
   */
  #note(kind, text) {
    this.#items.push({ kind, text });
  }

  /** @override @param {unknown} content */
  user(content) {
    this.#note('user', this.textOf(content));
  }

  /** @override @param {unknown} content */
  message(content) {
    this.#note('message', this.textOf(content));
  }

  /** @override @param {unknown} content */
  reasoning(content) {
    this.#note('reasoning', this.textOf(content));
  }

  /** @override @param {unknown} content */
  event(content) {
    this.#note('event', this.textOf(content));
  }

  /** @override @param {unknown} content */
  system(content) {
    this.#note('system', this.textOf(content));
  }

  /** @override @param {string} what */
  leaveOut(what) {
    this.#note('leaveOut', what);
  }

  /** @override @param {Call} found */
  call(found) {
    this.#items.push(callItemOf(found));
  }

  /** @override @param {Result} found */
  result(found) {
    const result = { ...found, id: idOf(found.id), content: this.textOf(found.content) };
    this.#items.push({ kind: 'result', result });
  }
}

/**
 * @param {Call} found
 * @returns {CallItem}
 */
const callItemOf = (found) => ({
  kind: 'call',
  call: { ...found, id: idOf(found.id), args: inputOf(found.args) },
});

/**
 * What two items have in common that are the same. It is written when they are compared, which most traces of one span never are.
 *
 * @param {Item} item
 */
function keyOf(item) {
  item.key ??=
    item.kind === 'call'
      ? `call\n${item.call.id}\n${item.call.name}\n${JSON.stringify(item.call.args)}`
      : `${item.kind}\n${item.kind === 'result' ? item.result.content : item.text}`;
  return item.key;
}

/** @param {unknown} id */
const idOf = (id) => (typeof id === 'number' ? String(id) : stringOf(id));

/** Calls that only a message has so far, or only a span, in their order. */
class Queue {
  /** @type {Node[]} */
  #calls = [];
  #next = 0;

  /** @param {Node} call */
  add(call) {
    this.#calls.push(call);
  }

  /** The first call that is still without its other half. */
  get first() {
    while (this.#calls[this.#next]?.isSpoken && this.#calls[this.#next].isTraced) this.#next++;
    return this.#calls[this.#next];
  }
}

/**
 * Whether two calls are two because they have other values for the same names. Under other names, a span may have the same arguments
 * in other words, as with those that the tool adds itself.
 *
 * @param {CallItem} item
 * @param {CallItem} other
 */
function areTwo(item, other) {
  const [names, others] = [item, other].map(({ call }) => Object.keys(call.args).sort().join());
  return names === others && names !== 'arguments' && names !== '';
}

/** Such calls of all tools. */
class Halves {
  /** By the tool, and by its ids and arguments, as far as they are asked for. @type {Map<string, Queue>} */
  #queues = new Map();

  /** @param {Node} call */
  add(call) {
    const { name, id, args: input } = /** @type {CallItem} */ (call.item).call;
    const args = JSON.stringify(input);
    for (const key of [`${name}`, `${name}\n${id}`, `${name}\n\n${args}`, `${name}\n${id}\n${args}`]) {
      const queue = this.#queues.get(key) ?? new Queue();
      this.#queues.set(key, queue);
      queue.add(call);
    }
  }

  /**
   * The other half of a call: the one with its id, or else the first of which one has no id, those with the same arguments before
   * others.
   *
   * @param {CallItem} item
   */
  find(item) {
    if (this.#queues.size === 0) return undefined;
    const { name, id, args: input } = item.call;
    const args = JSON.stringify(input);
    const keys =
      id === undefined
        ? [`${name}\n\n${args}`, `${name}`]
        : [`${name}\n${id}`, `${name}\n${undefined}\n${args}`, `${name}\n${undefined}`];
    for (const [at, key] of keys.entries()) {
      const call = this.#queues.get(key)?.first;
      const isLast = at === keys.length - 1;
      if (call !== undefined && !(isLast && areTwo(item, /** @type {CallItem} */ (call.item)))) return call;
    }
    return undefined;
  }
}

/** A list of messages: how often each item is in it, and its calls, which its results are of. */
class List {
  /** @type {Item | undefined} */
  first;
  /** Whether the conversation ends with it: then all that follows is new. */
  isLast = false;
  /** @type {Map<string, number>} */
  #counts = new Map();
  /** @type {Map<unknown, { calls: Node[], answered: number }>} */
  #byId = new Map();
  /** @type {Node[]} */
  #all = [];
  /** @type {Set<Node>} */
  #answered = new Set();
  #next = 0;

  /**
   * How often an item was there before this time.
   *
   * @param {string} key
   */
  count(key) {
    const count = this.#counts.get(key) ?? 0;
    this.#counts.set(key, count + 1);
    return count;
  }

  /**
   * @param {unknown} id
   * @param {Node} call
   */
  add(id, call) {
    this.#all.push(call);
    const calls = this.#byId.get(id);
    if (calls) calls.calls.push(call);
    else this.#byId.set(id, { calls: [call], answered: 0 });
  }

  /** @param {unknown} id */
  has(id) {
    return this.#byId.has(id);
  }

  /**
   * The next call with this id, or else the first that has no result in this list.
   *
   * @param {unknown} id
   */
  answer(id) {
    /** @type {Node | undefined} */
    let call;
    if (id !== undefined) {
      const calls = this.#byId.get(id);
      call = calls?.calls[calls.answered++];
    } else {
      while (this.#answered.has(this.#all[this.#next])) this.#next++;
      call = this.#all[this.#next];
    }
    if (call !== undefined) this.#answered.add(call);
    return call;
  }
}

/** The items of a trace in their order. */
class Conversation {
  #recorder = new Recorder('otel', { line: null, index: null });
  /** Of each message, because several spans hold the same object. @type {Map<unknown, readonly Item[]>} */
  #items = new Map();
  /** @type {Node | undefined} */
  #first;
  /** @type {Node | undefined} */
  #last;
  /** The list that all items are of, until there is another one. @type {List | undefined} */
  #only;
  #isComparing = false;
  /** @type {Map<string, Node[]>} */
  #byKey = new Map();
  /** The last call with each id. @type {Map<unknown, Node>} */
  #byId = new Map();
  /** @type {Node[]} */
  #calls = [];
  #firstUnanswered = 0;
  #hasUser = false;
  /** Calls that no span of a tool has had yet. */
  #untraced = new Halves();
  /** Calls that no message has had yet. */
  #unspoken = new Halves();

  /**
   * Adds what is new in messages that follow each other. What is said twice in them is there twice.
   *
   * @param {readonly unknown[]} messages
   * @param {List} [list] that they go on with: what the model was given, where these are what it returned
   * @returns {List}
   */
  add(messages, list = new List()) {
    const items = messages.flatMap((message) => this.#itemsOf(message));
    if (items.length === 0) return list;
    // An agent may return the whole conversation.
    if (list.first !== undefined && keyOf(items[0]) === keyOf(list.first)) return this.add(messages);
    list.first ??= items[0];
    if (this.#first === undefined) this.#only = list;
    else if (list !== this.#only) this.#compare();
    const places = items.map((item) => this.#placeOf(item, list));
    this.#insert(places);
    list.isLast = places[places.length - 1].node === this.#last;
    return list;
  }

  /** Makes the items comparable, when there is something to compare with those of the first list. */
  #compare() {
    if (this.#isComparing) return;
    this.#isComparing = true;
    for (let node = this.#first; node !== undefined; node = node.after) {
      this.#only?.count(keyOf(node.item));
      this.#remember(node);
      if (node.item.kind === 'call') this.#untraced.add(node);
    }
  }

  /** @param {unknown} message */
  #itemsOf(message) {
    const known = this.#items.get(message);
    if (known !== undefined) return known;
    const items = this.#recorder.itemsOf(message);
    this.#items.set(message, items);
    return items;
  }

  /**
   * Adds the call of a tool, if no message has it.
   *
   * @param {ToolSpan} span
   */
  addCall({ id, name, args, milliseconds }) {
    this.#compare();
    const item = callItemOf({ id, name, args });
    let node = this.#untraced.find(item);
    if (node === undefined) {
      node = this.#addCall(item);
      this.#unspoken.add(node);
      this.#link(node, undefined);
    }
    node.isTraced = true;
    node.milliseconds = milliseconds;
    return node;
  }

  /**
   * Adds the result of a call that `addCall` has returned, if no message has it.
   *
   * @param {Node} call
   * @param {ToolSpan} span
   */
  addResult(call, { content, failed }) {
    if (content === undefined || call.result !== undefined) return;
    const result = { content: this.#recorder.textOf(content), failed };
    this.#link(this.#addResult({ kind: 'result', result }, call), undefined);
  }

  /**
   * Makes steps of all items.
   *
   * @param {InstanceType<typeof TraceBuilder>} builder
   */
  tell(builder) {
    let count = 0;
    for (let node = this.#first; node !== undefined; node = node.after) {
      const { item } = node;
      if (item.kind === 'call') {
        // Results are of their calls whatever the ids are: some have none, or use one again.
        node.number = String(count++);
        builder.call({ ...item.call, id: node.number });
        if (node.milliseconds !== undefined) builder.took(node.number, node.milliseconds);
      } else if (item.kind === 'result') {
        builder.result({ ...item.result, id: node.call?.number ?? 'no call' });
      } else builder[item.kind](item.text);
    }
  }

  /**
   * The node of an item, which is new unless the conversation has it.
   *
   * @param {Item} item
   * @param {List} list
   * @returns {Place}
   */
  #placeOf(item, list) {
    const same = this.#sameAs(item, list);
    if (item.kind === 'call') {
      const half = same === undefined ? this.#unspoken.find(item) : undefined;
      const node = same ?? half ?? this.#addCall(item);
      if (same === undefined) {
        node.isSpoken = true;
        // The model's own words, which a span may have in other ones.
        node.item = item;
        this.#remember(node);
        if (half !== undefined) this.#byId.set(item.call.id, node);
        else if (this.#isComparing) this.#untraced.add(node);
      }
      list.add(item.call.id, node);
      return { node, isNew: same === undefined && half === undefined, isHalf: half !== undefined };
    }
    if (item.kind === 'result') {
      const call = this.#callOf(item.result.id, list);
      const known = call === undefined ? same : call.result;
      return { node: known ?? this.#addResult(item, call), isNew: known === undefined };
    }
    return same === undefined
      ? { node: this.#remember({ item }), isNew: true }
      : { node: same, isNew: false };
  }

  /**
   * The node of the same item, if it was there as often as it is in the list; undefined where all is new.
   *
   * @param {Item} item
   * @param {List} list
   */
  #sameAs(item, list) {
    if (!this.#isComparing) return undefined;
    const key = keyOf(item);
    const count = list.count(key);
    return list.isLast ? undefined : this.#byKey.get(key)?.[count];
  }

  /**
   * The call that a result in a list is of.
   *
   * @param {unknown} id
   * @param {List} list
   */
  #callOf(id, list) {
    const call = list.answer(id);
    if (call !== undefined || list.has(id)) return call;
    if (id !== undefined) return this.#byId.get(id);
    while (this.#calls[this.#firstUnanswered]?.result !== undefined) this.#firstUnanswered++;
    return this.#calls[this.#firstUnanswered];
  }

  /** @param {CallItem} item */
  #addCall(item) {
    /** @type {Node} */
    const node = { item };
    this.#calls.push(node);
    this.#byId.set(item.call.id, node);
    return node;
  }

  /**
   * @param {Extract<Item, { kind: 'result' }>} item
   * @param {Node | undefined} call
   */
  #addResult(item, call) {
    /** @type {Node} */
    const node = { item, call };
    if (call !== undefined) call.result = node;
    return this.#remember(node);
  }

  /**
   * Makes a node be found by what is in it.
   *
   * @param {Node} node
   */
  #remember(node) {
    if (!this.#isComparing) return node;
    const key = keyOf(node.item);
    const nodes = this.#byKey.get(key);
    if (nodes) nodes.push(node);
    else this.#byKey.set(key, [node]);
    return node;
  }

  /**
   * Puts new items before the known one that follows them in their list, and at the end if none does. What begins a list is put
   * before a known item only if no message has told how the conversation began: there was no turn of a user, or that item is a call
   * that only a span had.
   *
   * @param {readonly Place[]} places
   */
  #insert(places) {
    const known = places.findIndex(({ isNew }) => !isNew);
    const begin = known === -1 || places[known].isHalf || !this.#hasUser ? 0 : known;
    for (let at = 0; at < begin; at++) this.#link(places[at].node, undefined);
    /** @type {Node | undefined} */
    let next;
    for (let at = places.length - 1; at >= begin; at--) {
      const { node, isNew } = places[at];
      if (isNew) this.#link(node, next);
      next = node;
    }
    this.#hasUser ||= places.some(({ node }) => node.item.kind === 'user');
  }

  /**
   * @param {Node} node
   * @param {Node | undefined} after that it is put before; at the end without one
   */
  #link(node, after) {
    const before = after === undefined ? this.#last : after.before;
    node.before = before;
    node.after = after;
    if (before === undefined) this.#first = node;
    else before.after = node;
    if (after === undefined) this.#last = node;
    else after.before = node;
  }
}

module.exports = { Conversation };
