// What `with { type: 'file' }` makes of the files of a model package: their paths.

declare module '@knowledgepulse/all-minilm-l6-v2-q8/*' {
  const path: string;
  export default path;
}
