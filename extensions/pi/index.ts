// Rewind in Pi and oh-my-pi: hands events to `rewind bridge` and runs what it asks for. No decision
// is made here but one: what happens when the bridge fails.
import { readFileSync } from "node:fs";
import type { ExtensionAPI, ExtensionCommandContext, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { Bridge, Ended, type Json, Refused } from "./bridge.ts";
import { BUS, brief, type Forwarded, hostOf, isReminder, listen, withoutDoubles } from "./host.ts";

const PROTOCOL = 1;
const VERSION = "0.1.0";
const SILENCE = Number(process.env.REWIND_BRIDGE_SILENCE_MS) || 90_000; // a lock is waited for 60 s
const LONGEST_TEXT = 20_000; // characters of one argument of a tool call
const MOST_FAILURES = 3; // in a row, after which the session goes on without
const ESCAPES = ["\x1b", "\x1b[27u", "\x1b[27;1u", "\x1b[27;1:1u"]; // with and without kitty's protocol
const BOTH_ESCAPES = "\x1b\x1b"; // pressed so fast that they came together
const ESCAPES_WITHIN = 500;

type Context = ExtensionContext & Partial<ExtensionCommandContext>;

export default function rewind(pi: ExtensionAPI): void {
  const host = hostOf(pi);
  const contexts = new Map<number, Context>(); // of the calls that are under way
  let current: Context | undefined;
  let cwd = "";
  let off = ""; // why nothing is done in this session
  let failures = 0;
  let greeted = false; // it has answered once
  let tools = 0; // that the bridge offers
  const late: Json[] = []; // tools that omp is told of in an event that it waits for
  let greeting: Promise<void> | undefined;
  let waits = new Set<string>();
  let ready: Promise<void> | undefined; // tools and the like are registered
  let isReady: (() => void) | undefined;
  let stopKeys: (() => void) | undefined;

  const bridge = new Bridge(command(), SILENCE, (method, args, call) => {
    const ctx = contexts.get(call) ?? current;
    const serve = SERVED[method];
    if (!ctx || !serve) throw new Error(`no method ${method}`);
    return serve(ctx, args);
  });

  // ---- what the bridge may ask for

  const SERVED: Record<string, (ctx: Context, args: unknown[]) => unknown> = {
    "ui.select": (ctx, [title, options]) => host.select(ctx, String(title), options as string[]),
    "ui.confirm": (ctx, [title, message]) => ctx.ui.confirm(String(title), String(message)),
    "ui.input": (ctx, [title, hint]) => ctx.ui.input(String(title), String(hint)),
    "ui.notify": (ctx, [message, type]) => ctx.ui.notify(String(message), type as "info" | "warning" | "error"),
    "ui.setStatus": (ctx, [text]) => ctx.ui.setStatus("rewind", text ? String(text) : undefined),
    "ui.setEditorText": (ctx, [text]) => ctx.ui.setEditorText(String(text)),
    "ui.getEditorText": (ctx) => ctx.ui.getEditorText(),
    "session.leaf": (ctx) => ctx.sessionManager.getLeafId(),
    "session.entries": (ctx) => ctx.sessionManager.getEntries().map(brief),
    "session.branch": (ctx, [from, known]) => branch(ctx, String(from), known),
    "session.entry": (ctx, [id]) => ctx.sessionManager.getEntry(String(id)),
    "session.label": (ctx, [id]) => ctx.sessionManager.getLabel(String(id)),
    "session.appendEntry": (_, [type, data]) => pi.appendEntry(String(type), data),
    "session.setLabel": (_, [id, label]) => pi.setLabel(String(id), label ? String(label) : undefined),
    "agent.isIdle": (ctx) => ctx.isIdle(),
    "agent.sendMessage": (_, [message, options]) => pi.sendMessage(message as never, options as never),
    "agent.registerTool": (_, [tool]) => registerTool(tool as Json),
    "agent.registerCommand": (_, [name, description]) => registerCommand(String(name), String(description)),
    "command.navigateTree": (ctx, [id, options]) => ctx.navigateTree?.(String(id), (options ?? {}) as Json),
    "command.fork": (ctx, [id, options]) => ctx.fork?.(String(id), (options ?? {}) as Json),
    "command.waitForIdle": (ctx) => ctx.waitForIdle?.(),
    "settings.set": (_, [key, value]) => host.set?.(String(key), value),
    "keys.listen": (ctx) => listenToKeys(ctx),
    ready: (_, [names]) => {
      waits = new Set(names as string[]);
      isReady?.();
    },
    alive: () => undefined,
  };

  /** From an entry up to one that is known or to the root, newest first. */
  function branch(ctx: Context, from: string, known: unknown): Json[] {
    const found: Json[] = [];
    let entry = ctx.sessionManager.getEntry(from);
    while (entry && entry.id !== known) {
      found.push(brief(entry));
      entry = entry.parentId ? ctx.sessionManager.getEntry(entry.parentId) : undefined;
    }
    return found;
  }

  function registerTool(tool: Json): void {
    tools++;
    if (host.name === "omp") late.push(tool);
    else offer(tool);
  }

  function offer(tool: Json): void {
    const execute = async (id: string, params: unknown, _signal: unknown, _update: unknown, ctx: Context) =>
      (await request("tool", { name: tool.name, id, params }, ctx)) as never;
    pi.registerTool({ ...tool, execute } as never);
  }

  function registerCommand(name: string, description: string): void {
    pi.registerCommand(name, {
      description,
      handler: async (args, ctx) => {
        if (!ensure(ctx, "respawn")) return ctx.ui.notify(off, "warning");
        try {
          await request("command", { name, args }, ctx);
        } catch (error) {
          ctx.ui.notify(`rewind: ${error instanceof Error ? error.message : error}`, "error");
        }
      },
    });
  }

  /** Esc twice on an empty line, where Pi itself does nothing with it. */
  function listenToKeys(ctx: Context): void {
    let before = 0;
    stopKeys?.();
    stopKeys = ctx.ui.onTerminalInput((data) => {
      const now = Date.now();
      const once = ESCAPES.includes(data) && !bridge.asking;
      const twice = data === BOTH_ESCAPES || (once && now - before < ESCAPES_WITHIN);
      before = once && !twice ? now : 0;
      if (!twice || bridge.asking || !ctx.isIdle() || ctx.ui.getEditorText() !== "") return undefined;
      ctx.ui.setEditorText(`/${host.browser}`); // as if it was typed: only so do both hosts run a command
      return { data: "\r" };
    });
  }

  // ---- the connection

  /** What Rewind reads of the agent's settings. */
  function settings(): Json {
    const { rewind, doubleEscapeAction } = host.settings();
    return { rewind, doubleEscapeAction };
  }

  function note(ctx: Context, why: string): void {
    if (ctx.hasUI) ctx.ui.setStatus("rewind", `◇ ${why}`);
  }

  /** Start the bridge if need be; false when the session goes on without. */
  function ensure(ctx: Context, reason: string, previous?: string): boolean {
    current = ctx;
    if (greeting && ctx.cwd !== cwd) { // omp's /move: another folder, another bridge
      bridge.stop();
      off = "";
      reason = "resume";
    }
    cwd = ctx.cwd;
    if (off || (bridge.running && greeting)) return !off;
    const manager = ctx.sessionManager;
    const facts = {
      protocol: PROTOCOL,
      version: VERSION,
      host: host.name,
      mode: ctx.mode ?? (ctx.hasUI ? "tui" : "print"),
      hasUI: ctx.hasUI,
      cwd: ctx.cwd,
      session: manager.getSessionId(),
      sessionFile: manager.getSessionFile(),
      parentSession: manager.getHeader()?.parentSession,
      leaf: manager.getLeafId(),
      reason,
      previousSessionFile: previous,
      settings: settings(),
    };
    if (!bridge.running) bridge.start();
    ready = new Promise((resolve) => {
      isReady = resolve;
    });
    greeting = request("hello", facts, ctx).then(
      (answer) => {
        const said = answer as { off?: string };
        greeted = true;
        if (said.off) stop(ctx, said.off);
      },
      (error: Error) => {
        if (error instanceof Refused || !greeted) stop(ctx, `no checkpoints: ${error.message}`);
      },
    ).finally(isReady);
    return true;
  }

  function stop(ctx: Context, why: string): void {
    off = why;
    bridge.stop();
    note(ctx, why);
  }

  async function request(method: string, params: Json, ctx: Context): Promise<unknown> {
    const id = bridge.next();
    contexts.set(id, ctx);
    try {
      const answer = await bridge.ask(method, params, id);
      if (method !== "hello") failures = 0;
      return answer;
    } catch (error) {
      if (!(error instanceof Refused) && ++failures >= MOST_FAILURES) stop(ctx, `rewind failed: ${(error as Error).message}`);
      throw error;
    } finally {
      contexts.delete(id);
    }
  }

  async function forward(name: string, event: object, ctx: Context, { how, fields, as }: Forwarded): Promise<unknown> {
    if (!ensure(ctx, "respawn")) return undefined;
    if (how === "wait") {
      await ready;
      for (const tool of late.splice(0)) offer(tool);
    }
    const data = Object.fromEntries(fields.map((field) => [field.replace(/.*\./, ""), pick(event, field)]));
    const params = { name: as ?? name, data, leaf: ctx.sessionManager.getLeafId() };
    if (how === "tell" || (how === "wait" && !waits.has(name))) {
      bridge.tell("event", params);
      return undefined;
    }
    for (const last of [how === "closed", true]) {
      try {
        if (!ensure(ctx, "respawn")) return undefined;
        return (await request("event", params, ctx)) ?? undefined;
      } catch (error) {
        if (error instanceof Ended && !last) continue; // the next bridge is asked once more
        if (how !== "closed" || !greeted) return undefined;
        const why = error instanceof Error ? error.message : String(error);
        if (ctx.hasUI) ctx.ui.notify(`rewind failed (${why}), so this was called off; /${host.browser} shows where the files stand`, "error");
        return { cancel: true };
      }
    }
    return undefined;
  }

  /** What omp's own checkpoint and rewind do wrong, where ours have taken their place. */
  async function checked(messages: unknown[], ctx: Context): Promise<Json> {
    if (isReminder(messages.at(-1))) {
      const answer = (await forward("checkpoint_reminder", {}, ctx, { how: "ask", fields: [] })) as Json | undefined;
      if (answer?.stop) ctx.abort();
    }
    return { messages: withoutDoubles(messages) };
  }

  // ---- events and commands

  pi.on("session_start", async (event, ctx) => {
    if (!bridge.running || !greeting) { // over RPC it is announced twice
      off = "";
      failures = 0;
      ensure(ctx, event.reason, event.previousSessionFile);
    }
    if (event.reason === "fork") await greeting; // what it takes over is in the session then
  });

  for (const [name, reasonOf] of Object.entries(host.moves)) {
    const handler = async (event: { reason?: string; previousSessionFile?: string }, ctx: Context) => {
      bridge.stop();
      off = "";
      failures = 0;
      ensure(ctx, reasonOf(event), event.previousSessionFile);
      await greeting;
    };
    pi.on(name as never, handler as never);
  }

  for (const [name, forwarded] of Object.entries(host.events)) {
    const handler = async (event: { entries?: unknown[]; messages?: unknown[] }, ctx: Context) => {
      const answer = (await forward(name, event, ctx, forwarded)) as Json | undefined;
      if (name === "context" && host.name === "omp" && tools > 0) return checked(event.messages ?? [], ctx);
      if (name === "session_shutdown") {
        stopKeys?.();
        bridge.stop();
        off = "ended";
      }
      if (name === "turn_end" && Array.isArray(answer?.entries)) {
        answer.entries = [...(event.entries ?? []), ...answer.entries];
      }
      return answer;
    };
    pi.on(name as never, handler as never);
  }

  for (const name of BUS) {
    listen(pi, name, (data) => {
      if (current && ensure(current, "respawn")) bridge.tell("event", { name, data, leaf: null });
    });
  }

  registerCommand(host.browser, "Go back: restore files, conversation or both to a checkpoint");
  registerCommand("checkpoint", "Make a checkpoint now, with a label if you give one");
  bridge.start(); // it gets ready while the agent does
}

/** The command of `rewind init`: this machine's interpreter, beside this file. */
function command(): string[] {
  const given = process.env.REWIND_BRIDGE;
  try {
    const said = given ?? JSON.parse(readFileSync(new URL("bridge.json", import.meta.url), "utf8")).command;
    const words = typeof said === "string" ? JSON.parse(said) : said;
    if (Array.isArray(words) && words.length > 0) return words.map(String);
  } catch {} // damaged: what is in PATH may do
  return ["rewind", "bridge"];
}

function pick(event: object, path: string): unknown {
  const value = path.split(".").reduce<unknown>((at, key) => (at as Json | undefined)?.[key], event);
  if (path !== "input" || typeof value !== "object" || value === null) return value;
  const short = (text: unknown) => (typeof text === "string" ? text.slice(0, LONGEST_TEXT) : text);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, short(one)]));
}
