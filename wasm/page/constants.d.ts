/** The model of the site, which scripts/site.mjs defines. */
declare const MODEL: import('./model.mjs').Model;
