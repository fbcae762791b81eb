'use strict';

// Writes what was computed into the text of a trace, and leaves every other byte as it was: numbers that JavaScript would
// round or write in another way, the order of keys, spaces and escapes.

const { createScanner, SyntaxKind } = require('jsonc-parser');

/**
 * The text of a JSON object on one line, with values of its `metadata` set: replaced where they are, otherwise added at its end.
 *
 * @param {string} text valid JSON, with an object as `metadata`
 * @param {Record<string, unknown>} values by their names; JSON
 * @returns {string}
 */
function setMetadata(text, values) {
  const { end, members } = findMetadata(text);
  const edits = [];
  let separator = members.size === 0 ? '' : ',';
  for (const [name, value] of Object.entries(values)) {
    const json = JSON.stringify(value);
    const member = members.get(name);
    if (member) {
      edits.push({ ...member, json });
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

/** Without line ends and the indentation after them; no string of valid JSON holds a line end. */
function onOneLine(json) {
  return json.replace(/[\r\n]+[ \t]*/g, '');
}

/** Where the last value in `metadata` ends, and where the values are, by name. */
function findMetadata(text) {
  const scanner = createScanner(text, true);
  scanner.scan();
  // Of members of the same name the last one counts, as for JSON.parse.
  const { begin } = membersOf(scanner).get('metadata');
  scanner.setPosition(begin);
  scanner.scan();
  let end = scanner.getPosition();
  const members = membersOf(scanner);
  for (const member of members.values()) end = Math.max(end, member.end);
  return { end, members };
}

/** The values of the object whose brace was just read, by name. */
function membersOf(scanner) {
  const members = new Map();
  for (let token = scanner.scan(); token !== SyntaxKind.CloseBraceToken; token = scanner.scan()) {
    if (token === SyntaxKind.CommaToken) continue;
    const name = scanner.getTokenValue();
    // The colon.
    scanner.scan();
    const first = scanner.scan();
    const begin = scanner.getTokenOffset();
    skipValue(scanner, first);
    members.set(name, { begin, end: scanner.getPosition() });
  }
  return members;
}

/** Reads the rest of a value. Without recursion: a trace may be nested more deeply than the stack is. */
function skipValue(scanner, first) {
  let depth = 0;
  for (let token = first; ; token = scanner.scan()) {
    if (token === SyntaxKind.OpenBraceToken || token === SyntaxKind.OpenBracketToken) depth++;
    else if (token === SyntaxKind.CloseBraceToken || token === SyntaxKind.CloseBracketToken) depth--;
    if (depth === 0) return;
  }
}

module.exports = { setMetadata };
