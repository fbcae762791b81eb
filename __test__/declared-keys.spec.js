'use strict';

// The declarations name what results have: no property of a result is undeclared, and none is missing.

const fs = require('node:fs');
const path = require('node:path');

const ts = require('typescript-5.4');

const kp = require('..');
const { makeTrace } = require('./support/make-trace.js');
const { root } = require('./support/paths.js');
const { scratchDirectory } = require('./support/scratch.js');

/** The declared types by their names. */
const declared = new Map();
const text = fs.readFileSync(path.join(root, 'index.d.ts'), 'utf8');
ts.createSourceFile('index.d.ts', text, ts.ScriptTarget.Latest, true).forEachChild((node) => {
  if (ts.isInterfaceDeclaration(node)) declared.set(node.name.text, node);
  if (ts.isTypeAliasDeclaration(node)) declared.set(node.name.text, node.type);
});

/** The type itself, of a name or in parentheses. */
function resolved(type) {
  if (ts.isParenthesizedTypeNode(type)) return resolved(type.type);
  const own = ts.isTypeReferenceNode(type) && declared.get(type.typeName.text);
  return own ? resolved(own) : type;
}

/** The members of an object's type; undefined for other types. */
function membersOf(type) {
  const own = resolved(type);
  if (ts.isIntersectionTypeNode(own)) return own.types.flatMap((part) => membersOf(part) ?? []);
  return ts.isInterfaceDeclaration(own) || ts.isTypeLiteralNode(own) ? [...own.members] : undefined;
}

/** In what a value differs from its type. */
function differences(value, type, at) {
  if (value === null || typeof value !== 'object') return [];
  const own = resolved(type);
  if (ts.isUnionTypeNode(own)) {
    const each = own.types.filter((part) => membersOf(part)).map((part) => differences(value, part, at));
    return each.sort((a, b) => a.length - b.length)[0] ?? [];
  }
  const isArray = ts.isTypeReferenceNode(own) && own.typeName.text === 'Array';
  const element = ts.isArrayTypeNode(own) ? own.elementType : isArray && own.typeArguments[0];
  if (element) return [...new Set(value.flatMap((each) => differences(each, element, `${at}[]`)))];
  const members = membersOf(own);
  if (members === undefined) return [];
  const named = new Map(members.filter(({ name }) => name).map((member) => [member.name.text, member]));
  const isOpen = members.some(ts.isIndexSignatureDeclaration);
  const missing = [...named].filter(([name, { questionToken }]) => !questionToken && !(name in value));
  const more = Object.keys(value).filter((name) => !named.has(name) && !isOpen);
  return [
    ...missing.map(([name]) => `${at}.${name} is missing`),
    ...more.map((name) => `${at}.${name} is not declared`),
    ...[...named].flatMap(([name, member]) => differences(value[name], member.type, `${at}.${name}`)),
  ];
}

/** A type of the declarations by its name. */
const typeOf = (name) => declared.get(name);

const directory = scratchDirectory('declared-keys');
const traces = [1, 2, 3].map((number) => makeTrace({ objective: `Task ${number} of three` }));

test('differences finds what is missing and what is not declared', () => {
  const wrong = { cleaned: 'a', redactions: [{ kind: 'email' }] };
  expect(differences(wrong, typeOf('PiiCleanResult'), '')).toEqual([
    '.redactions[].type is missing',
    '.redactions[].count is missing',
    '.redactions[].kind is not declared',
  ]);
});

test.each(['native', 'messages', 'atif', 'knowledgepulse'])(
  'share as %s gives a Manifest as it is declared',
  async (as) => {
    const lost = makeTrace({ objective: 'Lost' });
    const secret = makeTrace({ objective: 'Mail bob@example.org' });
    const shared = [...traces, secret, { ...lost, steps: 7 }];
    const manifest = await kp.share(shared, path.join(directory, as), { as });
    expect(manifest.leftOut).toHaveLength(1);
    expect(differences(manifest, typeOf('Manifest'), 'manifest')).toEqual([]);
  },
);

test('score, compare and nearest give a Score and a NearestTrace as they are declared', async () => {
  const memory = new kp.TraceMemory({ method: 'lexical' });
  const scorer = new kp.Scorer({ memory });
  const scores = [await scorer.score(traces[0]), await scorer.score(traces[0])];
  expect(scores[1].nearest).not.toBeNull();
  for (const score of scores) expect(differences(score, typeOf('Score'), 'score')).toEqual([]);
  const [near] = await memory.nearest(traces[0]);
  expect(differences(near, typeOf('NearestTrace'), 'nearest')).toEqual([]);
});

test('select gives a Selection as it is declared', async () => {
  const known = new kp.TraceMemory({ method: 'lexical' });
  await known.add(traces[2]);
  const selection = await kp.select([...traces, traces[0]], { count: 1, known });
  expect(selection.left.length).toBeGreaterThan(0);
  expect(differences(selection, typeOf('Selection'), 'selection')).toEqual([]);
});

test('embedderStatus gives an EmbedderStatus as it is declared', async () => {
  expect(differences(await kp.embedderStatus(), typeOf('EmbedderStatus'), 'status')).toEqual([]);
});

test('readTraces gives ReadResults with ReasoningTraces as they are declared', async () => {
  const file = path.join(root, '__test__', 'formats', 'session.jsonl');
  let count = 0;
  for await (const result of kp.readTraces(file)) {
    count += 1;
    expect(differences(result, typeOf('ReadResult'), 'result')).toEqual([]);
  }
  expect(count).toBeGreaterThan(0);
});

test('clean and cleanPii give results as they are declared', async () => {
  const text = 'Mail bob@example.org';
  for (const result of [await kp.clean(text), kp.cleanPii(text)]) {
    expect(result.redactions).toHaveLength(1);
    expect(differences(result, typeOf('PiiCleanResult'), 'cleaned')).toEqual([]);
  }
});
