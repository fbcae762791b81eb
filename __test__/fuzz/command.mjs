// `npm run fuzz:command`: `kp-score` on hostile files, with every output already there.
//
//   npm run fuzz:command                            500 runs of the command
//   npm run fuzz:command -- --runs 5000
//   npm run fuzz:command -- --seed 7                the runs of that seed again
//   npm run fuzz:command -- --seed 7 --path 12:0    the one that failed, as is printed then
//
// Each run must keep these promises:
// - Every trace that is whole in the input is scored once, whatever the rest of the input is. A conversation is one if the first record of a
//   known format makes the file one of its format, or one of rows.
// - Nothing that existed is lost, even if the process is killed: a file is as it was or has all of the new contents, and each trace is in some file.
// - A result of an input that cannot be read to its end replaces nothing, but for a page to decide at.

import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { constants, gunzipSync, gzipSync } from 'node:zlib';

import fc from 'fast-check';

const require = createRequire(import.meta.url);
const { readTraces } = require('../..');
const { command, linesOf } = require('../support/kp-score.js');
const { makeTrace } = require('../support/make-trace.js');
const { run } = require('../support/run-script.js');

/** How many runs there are for one that is killed. */
const KILL_EVERY = 8;
const MOST_MILLISECONDS = 400;
/** How many runs there are for one of `report`. */
const REPORT_EVERY = 6;
/** Formats of rows, each of which is recognised by itself. */
const ROWS = ['openai-chat', 'sharegpt'];

/** How many lines that are no traces may come first. */
const MOST_OF_NO_FORMAT = 9;

/** How many parts of a file there are for one that is cut off. */
const CUT_EVERY = 4;

const { values: given } = parseArgs({
  options: { runs: { type: 'string', default: '500' }, seed: { type: 'string' }, path: { type: 'string' } },
});
const seed = Number(
  given.seed ?? process.env.KNOWLEDGEPULSE_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31),
);
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'knowledgepulse-fuzz-'));
const counts = {
  runs: 0,
  traces: 0,
  converted: 0,
  leftAsTheyWere: 0,
  incomplete: 0,
  reports: 0,
  killed: 0,
};

// Doubles would nearly all be next to 0.
const share = fc.integer({ min: 0, max: 1000 }).map((thousandths) => thousandths / 1000);
const nowAndThen = (every, arbitrary, otherwise = fc.constant(null)) =>
  fc.oneof({ weight: every - 1, arbitrary: otherwise }, { weight: 1, arbitrary });

// Lines that are no traces, none of which is closed by another: with one, the traces between them would be no lines any more.
const cutTrace = fc
  .nat(JSON.stringify(makeTrace()).length - 2)
  .map((end) => JSON.stringify(makeTrace()).slice(0, end + 1));
const BREAKS = [...'\n\r[]}'].map((character) => character.charCodeAt(0));
const binary = fc
  .uint8Array({ minLength: 1, maxLength: 40 })
  .map((bytes) => Buffer.from(bytes.map((byte) => (BREAKS.includes(byte) ? 0xff : byte))));
const DEEP = 5_000;
const withObjective = (json) =>
  JSON.stringify(makeTrace({ objective: 'OBJECTIVE' })).replace('"OBJECTIVE"', json);
const SAID = 'password=Geheim7654321';

const hostile = [
  '{"messages":[{"role":"SECRET","content":"SECRET"}]}',
  '{"messages":[{"role":"user","content":"SECRET"},{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{SECRET"}}]}]}',
  '{"schema_version":"ATIF-v1.8","agent":{},"steps":[{"source":"user","message":"SECRET","observation":{"results":[{"subagent_trajectory_ref":[{"trajectory_path":"input-0"}]}]}}]}',
  '{"type":"user","sessionId":"s","uuid":"u","message":{"role":"user","content":[{"type":"tool_result","content":"SECRET"}]}}',
  '{"conversations":[{"from":"human","value":"SECRET"},{"from":"function_call","value":"{SECRET"},{"from":"SECRET","value":""}]}',
  'SECRET',
  '{"SECRET":',
  '{"a":SECRET}',
].map((line) => line.replaceAll('SECRET', SAID));

const bad = fc.oneof(
  cutTrace,
  fc.constantFrom(...hostile),
  fc.constantFrom(
    withObjective('{"toString":1}'),
    withObjective('['.repeat(DEEP) + ']'.repeat(DEEP)),
    withObjective(`${'{"a":'.repeat(DEEP)}1${'}'.repeat(DEEP)}`),
  ),
  binary,
  fc.json({ maxDepth: 3 }),
  // Not `[`: lines behind an array that is not closed are its elements.
  fc.constantFrom(
    ...['', ' ', '\0', '{', '{"', '{"a":"', 'null', 'NaN', '"', '\\', ',', '{"a":1,}', '\ufeff', '{"a":['],
  ),
);

/**
 * A conversation in some other formats, of rows and of sessions, whose trace has an id that its own id makes. A shorter id would be no name:
 * two sessions that say the same without a time would be copies.
 *
 * @type {Record<string, (id: string, said: string) => object>}
 */
const CONVERSATIONS = {
  'openai-chat': (id, content) => ({
    id,
    messages: [
      { role: 'user', content },
      { role: 'assistant', content, tool_calls: [{ id: 'c', function: { name: 'f', arguments: content } }] },
    ],
  }),
  sharegpt: (id, value) => ({ id, conversations: [{ from: 'human', value }] }),
  'claude-code': (sessionId, content) => ({
    ...{ type: 'user', sessionId, uuid: sessionId },
    message: { role: 'user', content },
  }),
  'gemini-cli': (sessionId, text) => ({
    ...{ sessionId, projectHash: 'fuzz' },
    messages: [{ id: sessionId, type: 'gemini', content: [{ text }] }],
  }),
};
const conversation = fc.record({
  format: fc.constantFrom(...Object.keys(CONVERSATIONS)),
  said: fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }).map((text) => `Ask ${text}`),
    fc.constant(`log in: ${SAID}`),
  ),
});

/** What a good trace is made of; it gets an id of its own. */
const trace = fc.record({
  confidence: fc.constantFrom(0, 0.3, 0.6, 0.95, 1),
  domain: fc.constantFrom('code', 'finance', 'other'),
  objective: fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }),
    fc.constantFrom('{"[', ']}', '\\"', `log in: ${SAID}`),
  ),
  success: fc.boolean(),
});
const piece = fc.oneof(
  { weight: 5, arbitrary: fc.record({ traces: fc.tuple(trace) }) },
  { weight: 1, arbitrary: fc.record({ traces: fc.tuple(trace), indent: fc.constantFrom(1, 2, '\t') }) },
  {
    weight: 2,
    arbitrary: fc.record({
      traces: fc.array(trace, { maxLength: 4 }),
      isArray: fc.constant(true),
      indent: fc.constantFrom(0, 1, 4),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      traces: fc.array(trace, { minLength: 2, maxLength: 4 }),
      between: fc.constantFrom('', ' ', '\t'),
    }),
  },
  { weight: 2, arbitrary: fc.record({ conversation }) },
  { weight: 3, arbitrary: fc.record({ bad }) },
);
/** A piece of a file without traces. */
const foreignPiece = fc.oneof(fc.record({ conversation }), fc.record({ bad }));
const many = { maxLength: 12, size: 'max' };

/** A part of a file: lines, perhaps compressed, cut off somewhere, with something behind it. */
const partOf = (/** @type {fc.Arbitrary<unknown>} */ piece) =>
  fc.record({
    pieces: fc.array(piece, many),
    lineEnd: fc.constantFrom('\n', '\n', '\r\n', '\n\n'),
    endsLine: fc.boolean(),
    compressed: fc.boolean(),
    /** The share of it that is left. */
    cut: nowAndThen(CUT_EVERY, share),
  });
const appended = fc.oneof(
  fc.constantFrom('', '', '\n', '\0\0\0', 'garbage', '\u001f', '\u001f\u008b', '\u001f\u008b\u0008'),
  binary,
);
const input = fc
  .constantFrom(piece, foreignPiece)
  .chain((piece) => fc.record({ parts: fc.array(partOf(piece), { maxLength: 3, size: 'max' }), appended }));

/** What is where an output is to be written. */
// Windows lets not everybody make a link.
const links = process.platform === 'win32' ? [] : ['link', 'dangling'];
const place = fc.constantFrom('nothing', 'old', ...links);
const wanted = fc.record({
  inputs: fc.array(input, { minLength: 1, maxLength: 2 }),
  isReport: nowAndThen(REPORT_EVERY, fc.constant(true), fc.constant(false)),
  out: fc.option(place, { freq: 3 }),
  /** The share of the most milliseconds after which it is killed. */
  killed: nowAndThen(KILL_EVERY, share),
});

console.log(`seed ${seed}, ${given.runs} runs`);
try {
  await fc.assert(fc.asyncProperty(wanted, check), { numRuns: Number(given.runs), path: given.path, seed });
  console.log(
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(', '),
  );
  for (const [name, count] of Object.entries(counts)) {
    if (count === 0 && counts.runs >= 100) throw new Error(`${name} 0: it has tested less than it should`);
  }
  fs.rmSync(scratch, { recursive: true });
} catch (error) {
  console.error(error.message, error.cause?.message ?? error.cause);
  process.exitCode = 1;
}

/** Makes the files of a run, runs it, and looks at what it has made of them. */
async function check({ inputs, isReport, out: what, killed }) {
  counts.runs++;
  const directory = fs.mkdtempSync(path.join(scratch, 'run-'));
  const ids = counter();
  const made = [];
  for (const [at, parts] of inputs.entries()) {
    made.push(await makeInput(path.join(directory, `input-${at}`), parts, ids));
  }
  const args = isReport ? ['report'] : ['score', '--format', 'jsonl'];
  const name = isReport ? 'report.html' : 'out';
  // Without a name, a report goes into the working directory.
  const out = what === null && !isReport ? undefined : makeOutput(directory, name, what ?? 'nothing');
  if (out) args.push('--out', out.file);
  const before = out && read(out.target);
  const inputsBefore = made.map(({ file }) => fs.readFileSync(file));
  const killAfter = killed === null ? null : killed * MOST_MILLISECONDS;
  const result = await runCommand([...args, ...made.map(({ file }) => file)], killAfter);

  const good = made.flatMap(({ good }) => good).map(({ id }) => id);
  const isKilled = result.signal !== null;
  const isChanged = out !== undefined && !equal(read(out.target), before);
  const fail = (what) => {
    throw new Error(`${what}\n${[command, ...args].join(' ')}\n${JSON.stringify({ ...result, directory })}`);
  };
  for (const [at, { file }] of made.entries()) {
    if (!inputsBefore[at].equals(fs.readFileSync(file))) fail(`${file} has changed`);
  }
  if (out?.isLink && !fs.lstatSync(out.file).isSymbolicLink()) fail(`${out.file} is no link any more`);
  const isIncomplete = /; .* (?:is as it was|are as they were)$/m.test(result.stderr);
  if (isReport && isChanged && !isPage(read(out.target))) fail('the report is not whole');
  const idsOfOut = () => idsIn(read(out.target), out.file);
  if (isKilled) {
    counts.killed++;
    // What it was writing may be left; what had a name is whole.
    if (!isReport && isChanged) idsOfOut();
    fs.rmSync(directory, { recursive: true });
    return;
  }
  const left = fs.readdirSync(directory).filter((name) => /\.(?:tmp|lock)$/.test(name));
  if (left.length > 0) fail(`it has left ${left}`);
  if (/this is a bug|^ +at /m.test(result.stderr) || ![0, 1, 3].includes(result.code)) fail('it has crashed');
  if (isReport) {
    counts.reports++;
    if (!isChanged && result.code === 0) fail('there is no report');
    fs.rmSync(directory, { recursive: true });
    return;
  }
  const scored = linesOf(result.stdout).map((line) => JSON.parse(line));
  counts.traces += scored.length;
  counts.converted += scored.filter(({ format }) => format !== 'trace').length;
  const wellFormed = new Set(made.flatMap(({ made }) => made));
  const scoredIds = scored.map(({ id }) => id).filter((id) => wellFormed.has(id));
  const lost = good.filter((id) => !scoredIds.includes(id));
  if (lost.length > 0) fail(`not scored: ${lost}`);
  // What follows compressed contents that are cut off may repeat them.
  const isWhole = made.every(({ isBroken }) => !isBroken);
  if (isWhole && new Set(scoredIds).size < scoredIds.length) fail(`scored more than once: ${scoredIds}`);
  if (result.stderr.includes('nothing was scored')) {
    counts.leftAsTheyWere++;
    if (result.code !== 3) fail('a file was not written, and the code does not say so');
    if (isChanged) fail('a file has changed');
  } else if (isIncomplete) {
    counts.incomplete++;
    if (result.code !== 3) fail('a result is not complete, and the code does not say so');
    if (isChanged) fail('a result that is not complete has replaced a file');
  } else if (out && idsOfOut().join() !== scored.map(({ id }) => id).join()) fail('out is wrong');
  fs.rmSync(directory, { recursive: true });
}

/** Writes an input; `made` are the ids of the traces that it was made of, and `good` those that are whole in it, with their formats. */
async function makeInput(file, { parts, appended: last }, nextId) {
  const contents = [];
  const good = [];
  const made = [];
  /** What the file is: `rows`, the format of all its records, or `unknown`. @type {string | null} */
  let kind = null;
  let ofNoFormat = 0;
  // What follows text is text. What follows compressed contents is read if it is compressed, and they are whole.
  let isText = false;
  let isBroken = false;
  for (const { pieces, lineEnd, endsLine, compressed, cut } of parts) {
    const traces = [];
    const lines = [];
    isBroken ||= !compressed && !isText && contents.length > 0;
    for (const piece of pieces) {
      // Each element of an array is a record: at most one more than there are commas.
      if (kind === null && piece.bad !== undefined) ofNoFormat += String(piece.bad).split(',').length;
      // Of a part that is cut off, the first record may be missing. A file of which too much is of no format is refused.
      const isTold = cut === null && !isBroken && !(compressed && isText) && ofNoFormat < MOST_OF_NO_FORMAT;
      kind ??= isTold ? kindBy(piece) : 'unknown';
      const before = traces.length;
      lines.push(await bytesOf(piece, lineEnd, nextId, traces));
      for (const one of traces.slice(before))
        one.isOfFile = ['trace', kind].includes(one.format) || kind === 'rows';
    }
    made.push(...traces.map(({ id }) => id));
    const separated = lines.flatMap((line, at) => (at === 0 ? [line] : [Buffer.from(lineEnd), line]));
    const text = Buffer.concat([...separated, Buffer.from(endsLine ? lineEnd : '')]);
    const whole = compressed ? gzipSync(text) : text;
    const rest = whole.subarray(0, Math.ceil(whole.length * (cut ?? 1)));
    const isReadable = !isBroken && !(compressed && isText);
    if (isReadable) {
      const left = compressed ? inflated(rest) : rest;
      good.push(...traces.filter((one) => one.isOfFile && left.includes(one.text)));
    }
    contents.push(rest);
    isText ||= !compressed;
    isBroken ||= compressed && rest.length < whole.length;
    // Where two files are joined without a line end, the line is neither's.
    if (isText) contents.push(Buffer.from('\n'));
    else if (!isBroken) contents.push(gzipSync('\n'));
  }
  contents.push(Buffer.from(last));
  fs.writeFileSync(file, Buffer.concat(contents));
  return { file, good, made, isBroken };
}

/** What a piece makes of the file that it begins; null for none. */
function kindBy({ traces, bad: line, conversation }) {
  if (conversation !== undefined) return ROWS.includes(conversation.format) ? 'rows' : conversation.format;
  if (traces !== undefined) return traces.length > 0 ? 'rows' : null;
  // A record that looks like one of some format.
  return line.includes('{') ? 'unknown' : null;
}

async function bytesOf(piece, lineEnd, nextId, traces) {
  const { traces: wanted, isArray, between, indent = 0, bad: line, conversation } = piece;
  if (line !== undefined) return Buffer.from(line);
  if (conversation !== undefined) {
    const { format, said } = conversation;
    const text = JSON.stringify(CONVERSATIONS[format](`conversation-${nextId()}`, said));
    for await (const { trace, error } of readTraces(Buffer.from(text), { format })) {
      if (error !== undefined) throw error;
      traces.push({ id: trace.id, text, format });
    }
    return Buffer.from(text);
  }
  const texts = wanted.map((parts) => {
    const id = `t${nextId()}`;
    const text = JSON.stringify({ ...makeTrace(parts), id }, null, indent).replaceAll('\n', lineEnd);
    traces.push({ id, text, format: 'trace' });
    return text;
  });
  return Buffer.from(
    isArray ? `[${lineEnd}${texts.join(`,${lineEnd}`)}${lineEnd}]` : texts.join(lineEnd + between),
  );
}

/** Puts something where an output is to be written; `target` is the file that is to be replaced. */
function makeOutput(directory, name, what) {
  const file = path.join(directory, name);
  if (what === 'old') fs.writeFileSync(file, `old ${name}`);
  if (what !== 'link' && what !== 'dangling') return { file, target: file };
  const target = path.join(directory, `target-${name}`);
  if (what === 'link') fs.writeFileSync(target, `old ${name}`);
  fs.symlinkSync(path.basename(target), file);
  return { file, target, isLink: true };
}

function runCommand(args, killAfter) {
  return run(process.execPath, [command, ...args], {}, undefined, (child) => {
    child.stdin.end();
    if (killAfter === null) return;
    const timer = setTimeout(() => child.kill('SIGKILL'), killAfter);
    child.on('close', () => clearTimeout(timer));
  });
}

/** The ids in a file of JSON Lines, which is whole. */
function idsIn(contents, name) {
  if (contents === null) return [];
  const text = contents.toString();
  if (text !== '' && !text.endsWith('\n')) throw new Error(`${name} is not whole: ${text}`);
  return linesOf(text).map((line) => JSON.parse(line).id);
}

/** What zlib makes of gzip that may be cut off. */
function inflated(compressed) {
  if (compressed.length === 0) return compressed;
  return gunzipSync(compressed, { finishFlush: constants.Z_SYNC_FLUSH });
}

function read(file) {
  return fs.existsSync(file) ? fs.readFileSync(file) : null;
}

function counter() {
  let next = 0;
  return () => next++;
}

function isPage(contents) {
  return /<\/html>\s*$/.test(contents ?? '');
}

function equal(one, other) {
  return one === null || other === null ? one === other : one.equals(other);
}
