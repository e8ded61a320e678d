// What differs between Pi and oh-my-pi. Everything else is the same for both.
import type { ExtensionAPI, ExtensionContext, SessionEntry } from "@earendil-works/pi-coding-agent";

/**
 * How an event is handed on. "tell": nobody waits. "wait": as "ask" when the bridge says at the
 * start that it has something to say here, else "tell". "ask": the agent waits, and goes on when the
 * bridge fails. "closed": the agent waits, and what it was about to do is called off when the
 * bridge fails, because files may be half restored.
 */
export type How = "tell" | "wait" | "ask" | "closed";

export interface Forwarded {
  how: How;
  fields: string[];
  as?: string; // its name for the bridge, where the other host calls it something else
}

const COMMON: Record<string, Forwarded> = {
  before_agent_start: { how: "wait", fields: [] },
  context: { how: "tell", fields: [] },
  tool_call: { how: "ask", fields: ["toolCallId", "toolName", "input"] },
  tool_result: { how: "tell", fields: ["toolCallId", "toolName", "isError"] },
  user_bash: { how: "ask", fields: ["command"] },
  session_before_tree: {
    how: "closed",
    fields: ["preparation.targetId", "preparation.oldLeafId", "preparation.userWantsSummary"],
  },
  session_tree: { how: "ask", fields: ["newLeafId", "oldLeafId", "summaryEntry.id"] },
  session_compact: { how: "ask", fields: ["compactionEntry.id"] },
  session_shutdown: { how: "ask", fields: ["reason"] },
};

const PI: Record<string, Forwarded> = {
  ...COMMON,
  turn_end: { how: "wait", fields: ["turnIndex", "messageEntryId", "toolResultEntryIds", "outcome"] },
  session_before_fork: { how: "closed", fields: ["entryId", "position"] },
  agent_settled: { how: "ask", fields: ["aborted"] },
};

const OMP: Record<string, Forwarded> = {
  ...COMMON,
  session_before_branch: { how: "closed", fields: ["entryId"], as: "session_before_fork" },
  session_stop: { how: "ask", fields: [] },
  agent_end: { how: "tell", fields: [], as: "session_stop" }, // also after an abort
};

// Pi loads its extensions anew for another session, omp only says that it is there. A session that
// omp copies as a whole (`fork`) takes nothing over that was left for a branch.
const OMP_MOVES: Record<string, (event: { reason?: string }) => string> = {
  session_branch: () => "fork",
  session_switch: ({ reason }) => (reason === "new" ? "new" : "resume"),
};

/** omp's reminder that the agent's checkpoint is still open, which it repeats without end. */
export function isReminder(message: unknown): boolean {
  const { role, content } = (message ?? {}) as { role?: string; content?: unknown };
  return role === "developer" && wordsOf(content).includes("in an active checkpoint");
}

/** omp gives the report of a rewind to the model twice, first as the summary of a branch. */
export function withoutDoubles<M>(messages: M[]): M[] {
  const as = (at: number) => messages[at] as { role?: string; customType?: string } | undefined;
  return messages.filter((_, at) => as(at)?.customType !== "rewind-report" || as(at - 1)?.role !== "branchSummary");
}

export interface Host {
  name: "pi" | "omp";
  browser: string; // the command: omp's own /rewind moves the conversation
  events: Record<string, Forwarded>;
  moves: Record<string, (event: { reason?: string }) => string>;
  settings: () => Record<string, unknown>; // the agent's own
  set?: (key: string, value: unknown) => void; // where its settings are not in a JSON file
  select: (ctx: ExtensionContext, title: string, options: string[]) => Promise<string | undefined>;
}

/** What omp hands its extensions of its own modules; Pi hands out none. */
interface OmpModules {
  settings: {
    getGlobalSettings: () => Record<string, unknown>;
    set: (key: string, value: unknown) => void;
  };
  ExtensionSelectorComponent: new (
    title: string,
    options: string[],
    chosen: (option: string) => void,
    left: () => void,
    more: { tui: unknown },
  ) => never;
}

export function hostOf(pi: ExtensionAPI): Host {
  const omp = (pi as { pi?: OmpModules }).pi;
  if (omp) return ompHost(omp);
  return {
    name: "pi",
    browser: "rewind",
    events: PI,
    moves: {},
    settings: () => ({ ...pi.getSettings() }),
    select: (ctx, title, options) => ctx.ui.select(title, options),
  };
}

function ompHost({ settings, ExtensionSelectorComponent: Selector }: OmpModules): Host {
  return {
    name: "omp",
    browser: "checkpoints",
    events: OMP,
    moves: OMP_MOVES,
    settings: () => settings.getGlobalSettings(),
    set: (key, value) => settings.set(key, value),
    // omp's own dialogs lie below its full-screen selectors, where nobody sees them: ours lies above.
    select: (ctx, title, options) =>
      ctx.mode !== "tui"
        ? ctx.ui.select(title, options)
        : ctx.ui.custom((tui, _theme, _keys, done) => new Selector(title, options, done, () => done(undefined), { tui }), {
            overlay: true,
          }),
  };
}

/** Entries of other extensions that ask something of Rewind, on the agent's own event bus. */
export const BUS = ["rewind:fork-preference", "rewind:checkpoint-entry"];

export function listen(pi: ExtensionAPI, name: string, handler: (data: unknown) => void): void {
  pi.events?.on(name, handler);
}

/** An entry without what is large: its place in the tree, what it is, and a prompt's words. */
export function brief(entry: SessionEntry): Record<string, unknown> {
  const { id, parentId, type } = entry;
  const found: Record<string, unknown> = { id, parentId, type };
  if (entry.type === "message") {
    found.role = entry.message.role;
    if (entry.message.role === "user") found.text = wordsOf(entry.message.content);
  } else if (entry.type === "custom") {
    found.customType = entry.customType;
    if (entry.customType.startsWith("rewind-")) found.data = entry.data;
  } else if (entry.type === "custom_message") {
    found.customType = entry.customType;
    found.text = wordsOf(entry.content);
  } else if (entry.type === "label") {
    found.targetId = entry.targetId;
    found.label = entry.label;
  }
  return found;
}

function wordsOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => (part?.type === "text" ? String(part.text) : "")).join("");
}
