'use strict';

// What goes to standard error: messages, and on a terminal a progress bar below them.

const { MultiBar } = require('cli-progress');

const { printable } = require('./printable.js');
const { rate } = require('./summary.js');

const BAR_WIDTH = 24;
const CYAN = ['\u001b[36m', '\u001b[39m'];

/** A line that is longer is cut: an error may quote a trace. */
const LINE_LENGTH = 500;

class Messages {
  #isQuiet;
  /** @type {MultiBar | undefined} */
  #bars;
  /** @type {import('cli-progress').SingleBar | undefined} */
  #bar;
  #started = 0;
  /** @type {number | null} */
  #totalBytes = null;
  #readBytes = 0;
  #textBytes = 0;
  #doneBytes = 0;
  #done = 0;

  /** @param {{ quiet: boolean }} options `quiet` leaves out all but failures */
  constructor({ quiet }) {
    this.#isQuiet = quiet;
    // The reader has closed standard error, so the message is dropped.
    process.stderr.on('error', () => {});
  }

  /**
   * What ends the run, or a part of it.
   *
   * @param {string} message
   */
  failure(message) {
    this.#print(`kp-score: ${printable(message, LINE_LENGTH)}`);
  }

  /** @param {string} message */
  warning(message) {
    if (!this.#isQuiet) this.#print(`kp-score: warning: ${printable(message, LINE_LENGTH)}`);
  }

  /**
   * A line that says what it is about itself.
   *
   * @param {string} message
   */
  note(message) {
    if (!this.#isQuiet) this.#print(printable(message, LINE_LENGTH));
  }

  /**
   * Several lines, for the end.
   *
   * @param {string} text
   */
  text(text) {
    process.stderr.write(text);
  }

  /** @param {string} line */
  #print(line) {
    // The next redraw, a tenth of a second from now, puts it above the bar.
    if (this.#bar) this.#bars?.log(`${line}\n`);
    else process.stderr.write(`${line}\n`);
  }

  /**
   * Shows a bar until `stopProgress`, if standard error is a terminal.
   *
   * @param {number | null} totalBytes how much there is to read; null if that is not known
   */
  startProgress(totalBytes) {
    if (!process.stderr.isTTY || this.#isQuiet) return;
    this.#totalBytes = totalBytes;
    this.#started = performance.now();
    this.#bars = new MultiBar({
      clearOnComplete: true,
      forceRedraw: true,
      format: () => this.#progress(),
      // The command has handlers of its own.
      gracefulExit: false,
      hideCursor: true,
      stream: process.stderr,
    });
    this.#bar = this.#bars.create(1, 0);
  }

  /**
   * Counts bytes that were read, compressed or not.
   *
   * @param {number} bytes
   */
  onRead = (bytes) => {
    this.#readBytes += bytes;
  };

  /**
   * And this is what they were.
   *
   * @param {number} bytes
   */
  onText(bytes) {
    this.#textBytes += bytes;
  }

  /**
   * Counts a value that was scored or refused, with its bytes.
   *
   * @param {number} bytes
   */
  onDone(bytes) {
    this.#done++;
    this.#doneBytes += bytes;
  }

  /** So has everything that was read, also what lies between the values. */
  onAllDone() {
    this.#doneBytes = this.#textBytes;
  }

  #progress() {
    const seconds = (performance.now() - this.#started) / 1000;
    const traces = `${this.#done.toLocaleString('en')} ${this.#done === 1 ? 'trace' : 'traces'}`;
    const perSecond = `${rate(this.#done / seconds)}/s`;
    if (!this.#totalBytes) return `${traces}  ${perSecond}`;
    // What has been read but waits to be scored does not count.
    const share = Math.min(1, this.#doneBytes / Math.max(1, this.#textBytes));
    const progress = Math.min(1, (this.#readBytes * share) / this.#totalBytes);
    const left = progress > 0 ? duration((seconds / progress) * (1 - progress)) : '-:--';
    const full = Math.round(progress * BAR_WIDTH);
    const [on, off] = hasColours(process.stderr) ? CYAN : ['', ''];
    const bar = `${on}${'█'.repeat(full)}${off}${'░'.repeat(BAR_WIDTH - full)}`;
    return `${bar} ${String(Math.floor(progress * 100)).padStart(3)} %  ${traces}  ${perSecond}  ETA ${left}`;
  }

  stopProgress() {
    if (!this.#bar) return;
    // What was to be put above it.
    this.#bars?.update();
    this.#bars?.stop();
    this.#bar = undefined;
  }
}

/**
 * Whether to use colours; see https://no-color.org.
 *
 * @param {NodeJS.WriteStream} stream
 */
function hasColours(stream) {
  return stream.isTTY === true && !process.env.NO_COLOR && stream.hasColors?.() !== false;
}

/** @param {number} seconds */
function duration(seconds) {
  const whole = Math.ceil(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const padded = (/** @type {number} */ value) => String(value).padStart(2, '0');
  const start = hours > 0 ? `${hours}:${padded(minutes)}` : String(minutes);
  return `${start}:${padded(whole % 60)}`;
}

module.exports = { Messages };
