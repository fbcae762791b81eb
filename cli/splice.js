'use strict';

// Writes what was computed into the text of a trace, and leaves every other byte as it was: numbers that JavaScript would
// round or write in another way, the order of keys, spaces and escapes.

const { createScanner, SyntaxKind } = require('jsonc-parser');

/** @typedef {import('jsonc-parser').JSONScanner} Scanner */

/** @typedef {{ name: string, nameBegin: number, begin: number, end: number }} Member */

/** @typedef {{ begin: number, end: number, json: string }} Edit */

/**
 * The text of a JSON object on one line, with values of its `metadata` set: replaced where they are, otherwise added at its end.
 * Where the value is undefined, every member of that name is removed, with one comma.
 *
 * @param {string} text valid JSON, with an object as `metadata`
 * @param {Record<string, unknown>} values by their names; JSON
 * @returns {string}
 */
function setMetadata(text, values) {
  const { end, members } = findMetadata(text);
  const isRemoved = (/** @type {Member} */ { name }) =>
    Object.hasOwn(values, name) && values[name] === undefined;
  const edits = removals(members, isRemoved);
  let separator = members.every(isRemoved) ? '' : ',';
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) continue;
    const json = JSON.stringify(value);
    // Of members of the same name the last one counts, as for JSON.parse.
    const member = members.filter((each) => each.name === name).at(-1);
    if (member) {
      edits.push({ begin: member.begin, end: member.end, json });
    } else {
      edits.push({ begin: end, end, json: `${separator}${JSON.stringify(name)}:${json}` });
      separator = ',';
    }
  }
  // What is added keeps its order: the sort is stable.
  edits.sort((a, b) => a.begin - b.begin);
  let result = '';
  let at = 0;
  for (const { begin, end, json } of edits) {
    result += text.slice(at, begin) + json;
    at = end;
  }
  return onOneLine(result + text.slice(at));
}

/**
 * The edits that remove members: each with the comma before it, or after it where no member is left before.
 *
 * @param {Member[]} members
 * @param {(member: Member) => boolean} isRemoved
 */
function removals(members, isRemoved) {
  let isFirst = true;
  return members.flatMap((member, at) => {
    if (!isRemoved(member)) {
      isFirst = false;
      return [];
    }
    const [before, after] = [members[at - 1], members[at + 1]];
    if (!isFirst) return [{ begin: before.end, end: member.end, json: '' }];
    return [{ begin: member.nameBegin, end: after?.nameBegin ?? member.end, json: '' }];
  });
}

/**
 * Without line ends and the indentation after them; no string of valid JSON holds a line end.
 *
 * @param {string} json
 */
function onOneLine(json) {
  return json.replace(/[\r\n]+[ \t]*/g, '');
}

/**
 * Where the last value in `metadata` ends, and its members.
 *
 * @param {string} text
 */
function findMetadata(text) {
  const scanner = createScanner(text, true);
  scanner.scan();
  const metadata = membersOf(scanner).filter(({ name }) => name === 'metadata');
  scanner.setPosition(metadata[metadata.length - 1].begin);
  scanner.scan();
  const start = scanner.getPosition();
  const members = membersOf(scanner);
  return { end: members.at(-1)?.end ?? start, members };
}

/**
 * The members of the object whose brace was just read, in order: where their names begin, and their values begin and end.
 *
 * @param {Scanner} scanner
 */
function membersOf(scanner) {
  /** @type {Member[]} */
  const members = [];
  for (let token = scanner.scan(); token !== SyntaxKind.CloseBraceToken; token = scanner.scan()) {
    if (token === SyntaxKind.CommaToken) continue;
    const name = scanner.getTokenValue();
    const nameBegin = scanner.getTokenOffset();
    // The colon.
    scanner.scan();
    const first = scanner.scan();
    const begin = scanner.getTokenOffset();
    skipValue(scanner, first);
    members.push({ name, nameBegin, begin, end: scanner.getPosition() });
  }
  return members;
}

/**
 * Reads the rest of a value. Without recursion: a trace may be nested more deeply than the stack is.
 *
 * @param {Scanner} scanner
 * @param {import('jsonc-parser').SyntaxKind} first
 */
function skipValue(scanner, first) {
  let depth = 0;
  for (let token = first; ; token = scanner.scan()) {
    if (token === SyntaxKind.OpenBraceToken || token === SyntaxKind.OpenBracketToken) depth++;
    else if (token === SyntaxKind.CloseBraceToken || token === SyntaxKind.CloseBracketToken) depth--;
    if (depth === 0) return;
  }
}

module.exports = { setMetadata };
