// The model of the site: fetched when it is first needed, and kept by the browser.

/**
 * What scripts/site.mjs puts here: the folder of the model, which is named after its contents, and the sizes of its files.
 *
 * @typedef {{ folder: string, files: Record<string, number> }} Model
 */

/** The cache of the browser that keeps the model. */
const CACHE = 'knowledgepulse-model';

/**
 * Fetches the files of the model, from the cache if they were fetched before.
 *
 * @param {Model} model
 * @param {(fetched: number, total: number) => void} onProgress takes bytes
 * @returns {Promise<Uint8Array[]>} the files, in their order
 */
export async function fetchModel({ folder, files }, onProgress) {
  // Pages without a secure context have no caches, and a browser may refuse them.
  const cache = await globalThis.caches?.open(CACHE).catch(() => undefined);
  const total = Object.values(files).reduce((sum, size) => sum + size, 0);
  let done = 0;
  const read = [];
  for (const [name, size] of Object.entries(files)) {
    const url = new URL(folder + name, import.meta.url).href;
    const kept = await cache?.match(url);
    const response = kept ?? (await fetch(url));
    if (!response.ok || response.body === null)
      throw new Error(`${folder}${name} cannot be fetched: ${response.status}`);
    const bytes = new Uint8Array(size);
    let length = 0;
    const reader = response.body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (length + part.value.length <= size) bytes.set(part.value, length);
      length += part.value.length;
      onProgress(done + length, total);
    }
    if (length !== size) {
      await cache?.delete(url);
      throw new Error(`${folder}${name} has ${length} bytes in place of ${size}: load it again`);
    }
    // What does not fit into the quota is fetched again the next time.
    if (!kept) await cache?.put(url, new Response(bytes)).catch(() => undefined);
    done += size;
    read.push(bytes);
  }
  const current = new URL(folder, import.meta.url).href;
  for (const { url } of (await cache?.keys()) ?? []) if (!url.startsWith(current)) await cache?.delete(url);
  return read;
}
