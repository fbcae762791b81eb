// semhash of MinishLab, in a Python that has it: `pip install semhash==0.5.0`, and KNOWLEDGEPULSE_SEMHASH names that Python. Its own model is
// not on PyPI, so it gets our embeddings of the digests.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SCRIPT = path.join(path.dirname(fileURLToPath(import.meta.url)), 'semhash_side.py');

/**
 * Returns the process that finds representatives among embeddings; undefined without a Python.
 *
 * @returns {{ represent: (vectors: Float32Array[], count: number) => Promise<number[]>, end: () => void } | undefined}
 */
export function semhash() {
  const python = process.env.KNOWLEDGEPULSE_SEMHASH;
  if (!python) return undefined;
  const child = spawn(python, [SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async represent(vectors, count) {
      child.stdin.write(
        `${JSON.stringify({ vectors: vectors.map((vector) => Array.from(vector)), count })}\n`,
      );
      const { value, done } = await answers.next();
      if (done) throw new Error('semhash has ended: see above');
      return JSON.parse(value);
    },
    end: () => child.stdin.end(),
  };
}
