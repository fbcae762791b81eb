'use strict';

// The names of the formats, for modules that must not load the addon.

/** @import { FormatName } from '../formats.js' */

/** The name of the traces of this package, which need no reader. */
const NATIVE = /** @type {const} */ ('trace');

/** @type {readonly FormatName[]} */
const FORMAT_NAMES = [NATIVE, 'atif', 'swe-agent', 'openai-chat', 'claude-code', 'otel'];

module.exports = { FORMAT_NAMES, NATIVE };
