// `node scripts/llvm-mca.mjs`: how near the inner loops of the encoder's NEON kernels are to the processors' peak, as
// llvm-mca predicts it. crates/encoder/DESIGN.md has the figures. Needs llvm-mca (`LLVM_MCA` names another one than that of
// the path) and the Rust target.

import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

import { root } from './platform.mjs';
import { run, runScript } from './setup.mjs';

const TARGET = 'aarch64-unknown-linux-musl';

/**
 * How many of an instruction each processor can begin in a cycle, as the models of LLVM have it.
 *
 * @type {Record<string, Record<string, number>>}
 */
const PROCESSORS = {
  'apple-m1': { fmla: 3, sdot: 3, smlal: 2 },
  'neoverse-n1': { fmla: 2, sdot: 2, smlal: 1 },
  'neoverse-v2': { fmla: 4, sdot: 4, smlal: 2, smmla: 4 },
};

const TURNS = 1000;

/** The loops whose last line jumps to their first, and that no other line jumps into or out of. @param {string} assembly */
function* loops(assembly) {
  const lines = assembly.split('\n');
  /** @type {Map<string, number>} */
  const labels = new Map();
  for (const [at, line] of lines.entries()) {
    const label = line.match(/^(\.L\w+):/)?.[1];
    if (label) labels.set(label, at);
    const target = line.match(/^\s+(?:b\.\w+|cbn?z|tbn?z)\s.*?(\.L\w+)$/)?.[1];
    const from = target && labels.get(target);
    if (from === undefined || from === '') continue;
    const body = lines.slice(from + 1, at + 1);
    if (!body.some((line) => /^\.L\w+:/.test(line))) {
      yield body.filter((line) => /^\s+[a-z]/.test(line));
    }
  }
}

await runScript(() => {
  const args = ['rustc', '--release', '--locked', '--package', 'knowledgepulse-encoder', '--lib'];
  run('cargo', [...args, '--target', TARGET, '--', '--emit', 'asm'], { cwd: root });
  const target = process.env.CARGO_TARGET_DIR ?? path.join(root, 'target');
  const folder = path.join(target, TARGET, 'release', 'deps');
  const files = readdirSync(folder)
    .filter((name) => /^knowledgepulse_encoder-\w+\.s$/.test(name))
    .map((name) => path.join(folder, name))
    .sort((a, b) => statSync(a).mtimeMs - statSync(b).mtimeMs);
  const seen = new Set();
  for (const body of loops(readFileSync(files[files.length - 1], 'utf8'))) {
    for (const instruction of ['fmla', 'sdot', 'smlal', 'smmla']) {
      const count = body.filter((line) => new RegExp(`^\\s+${instruction}2?\\s`).test(line)).length;
      const input = body.join('\n');
      // Whole tiles alone.
      if (count < 24 || seen.has(input)) continue;
      seen.add(input);
      const able = Object.entries(PROCESSORS).filter(([, most]) => instruction in most);
      const shares = able.map(([processor, most]) => {
        const cycles = predict(processor, input);
        return `${processor} ${Math.round((100 * count) / (cycles * most[instruction]))} %`;
      });
      console.log(`${count} ${instruction} of ${body.length} instructions: ${shares.join(', ')}`);
      if (process.argv.includes('--listing')) console.log(`${input}\n`);
    }
  }
});

/** The cycles of a turn. @param {string} processor @param {string} input */
function predict(processor, input) {
  const mca = process.env.LLVM_MCA ?? 'llvm-mca';
  const args = ['-mtriple=aarch64', `-mcpu=${processor}`, '-mattr=+dotprod,+i8mm', `-iterations=${TURNS}`];
  const { stdout, stderr, error } = spawnSync(mca, args, { input, encoding: 'utf8' });
  const cycles = stdout?.match(/^Total Cycles:\s+(\d+)$/m)?.[1];
  if (!cycles) throw new Error(`${mca}: ${error?.message ?? stderr}`);
  return Number(cycles) / TURNS;
}
