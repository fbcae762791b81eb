// Numbers, times and names as the page shows them.

const integers = new Intl.NumberFormat('en');
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** @param {number} value */
export const integer = (value) => integers.format(value);

/** @param {number} value */
export const short = (value) => compact.format(value).replace('K', 'k');

/**
 * @param {number} number
 * @param {string} noun
 * @param {string} [plural]
 */
export const count = (number, noun, plural = `${noun}s`) =>
  `${integer(number)} ${number === 1 ? noun : plural}`;

const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric' });
const minutes = new Intl.DateTimeFormat('en-GB', {
  ...{ day: 'numeric', month: 'long', hour: '2-digit', minute: '2-digit' },
});

/** @param {string | null} time in ISO 8601 */
const dateOf = (time) => {
  const date = new Date(time ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? null : date;
};

/** Returns a day: `4 September 2026`; nothing of no time. @param {string | null} time */
export function day(time) {
  const date = dateOf(time);
  return date === null ? '' : days.format(date);
}

/** @param {string | null} time */
export function minute(time) {
  const date = dateOf(time);
  return date === null ? '' : minutes.format(date).replace(' at ', ' ');
}

/** Returns the days between times: `1 to 30 September 2026`. @param {Array<string | null>} times */
export function period(times) {
  const dates = times.flatMap((time) => dateOf(time) ?? []).sort((a, b) => a.getTime() - b.getTime());
  if (dates.length === 0) return '';
  return days.formatRange(dates[0], dates[dates.length - 1]).replace(/\s*–\s*/u, ' to ');
}

/** @type {Record<string, string>} how agents write their names */
const AGENTS = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  cursor: 'Cursor',
  'copilot-cli': 'Copilot',
  'gemini-cli': 'Gemini CLI',
  'qwen-code': 'Qwen Code',
  openhands: 'OpenHands',
  goose: 'Goose',
  cline: 'Cline',
  trace: 'a trace',
};

/** @param {string} agent */
export const nameOfAgent = (agent) => AGENTS[agent] ?? agent;
