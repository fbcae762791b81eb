// The data of the page, as crates/command/src/desk writes them. Texts are text to the page, never markup.

/** What a person decides about. */
export interface Desk {
  /** The version of the program. */
  version: string;
  /** Whether the texts are the original ones, in which nothing was replaced. */
  raw: boolean;
  /** The command that follows the decisions. */
  command: string;
  /** How the proposed sessions were chosen. */
  explanation: string;
  /** The sessions in the order of their worth. */
  sessions: SessionRow[];
  /** Records of dropped files that could not be read: the first 100, each with its place and its reason. */
  unread?: { count: number; first: Array<{ place: string; reason: string }> };
}

/** A line of the list. */
export interface SessionRow {
  /** The id by which decisions name it. */
  id: string;
  /** The beginning of its objective, behind one that most sessions share. */
  name: string;
  agent: string;
  model: string | null;
  project: string | null;
  /** When it began, in ISO 8601. */
  began: string | null;
  /** How often the user spoke. */
  turns: number;
  calls: number;
  failedCalls: number;
  /** About how many tokens it has. */
  tokens: number;
  /** What was observed in it; no verdict. */
  facts: Fact[];
  /** What was replaced, the most dangerous first: `4 secrets, 1 e-mail address, 60 paths`. */
  replaced: string;
  /** How many secrets were replaced. */
  secrets: number;
  /** How many names, addresses and numbers of people and machines were replaced. */
  personal: number;
  /** How many places a person should look at. */
  places: number;
  /** Whether it succeeded; `null` if nobody knows. */
  success: boolean | null;
  /** Its rank among the proposed sessions, from 1; `null` if it is not proposed. */
  rank: number | null;
  /** Why it is not proposed, where there is a reason. */
  why: string | null;
  /** How many sessions it stands for. */
  standsFor: number;
  /** How many earlier copies of it were left out. */
  copies: number;
  /** The position of the session whose agent started it. */
  parent: number | null;
  /** The positions of sessions that are like it, with their similarity, 0 to 1. */
  alike: Array<[position: number, similarity: number]>;
  /** Whether the page has its conversation. */
  isWhole: boolean;
}

/** Something that was observed in a session. */
export interface Fact {
  words: string;
  /** Whether it speaks for the session; `null` if neither. */
  good: boolean | null;
}

/** A session as it is read. */
export interface Conversation {
  turns: Turn[];
  /** The words of the places that a person should look at. */
  places: string[];
}

/** What the user or the agent says at once. */
export interface Turn {
  by: 'user' | 'agent';
  text?: string;
  /** What the agent thought, which the user did not see. */
  reasoning?: string;
  calls?: Call[];
}

/** A call of a tool, and its result if there is one. */
export interface Call {
  tool: string;
  input: Record<string, unknown>;
  result?: string;
  failed?: boolean;
}

/** A line of decisions.jsonl. */
export interface Decision {
  session: string;
  decision?: 'keep' | 'leave out';
  outcome?: 'succeeded' | 'failed';
  /** Words that are struck out wherever they stand. */
  strike?: string[];
}
