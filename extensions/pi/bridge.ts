// The Python side as a child process: JSON-RPC 2.0, one ASCII object a line (docs/format.md).
// It decides; this carries. What is waited for ends when the child is silent for too long: a silent
// child is killed, because nothing may change files after a time-out was reported.
import { type ChildProcess, spawn } from "node:child_process";
import type { Socket } from "node:net";

export type Json = Record<string, unknown>;
export type Serve = (method: string, args: unknown[], call: number) => unknown;

const LONGEST_LINE = 1 << 28;

interface Waiting {
  resolve: (value: unknown) => void;
  reject: (error: Error) => void;
}

/** What the child answered, when that is an error of its own and not one of the connection. */
export class Refused extends Error {}

/** The child has ended by itself, or was killed by somebody else. */
export class Ended extends Error {}

export class Bridge {
  private readonly command: string[];
  private readonly silence: number;
  private readonly serve: Serve;
  private child: ChildProcess | undefined;
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;
  private heard = 0;
  private asked = 0; // dialogs and other questions of the child that are open
  private rest = "";

  constructor(command: string[], silence: number, serve: Serve) {
    this.command = command;
    this.silence = silence;
    this.serve = serve;
  }

  get running(): boolean {
    return this.child !== undefined;
  }

  /** Whether the child waits for an answer: a dialog is open. */
  get asking(): boolean {
    return this.asked > 0;
  }

  /** Neither the child nor its pipes keep the agent from ending; questions under way do. */
  start(): void {
    const [program = "rewind", ...rest] = this.command;
    let child: ChildProcess;
    try {
      child = spawn(program, rest, { stdio: ["pipe", "pipe", "ignore"] });
    } catch {
      return; // no memory, no process left: whoever asks is told that it is not running
    }
    this.child = child;
    this.rest = "";
    this.asked = 0;
    child.on("error", (error) => this.lost(child, new Error(error.message)));
    child.on("exit", (code, signal) => this.lost(child, new Ended(`it ended (${signal ?? code})`)));
    child.unref();
    for (const pipe of [child.stdin, child.stdout]) (pipe as Partial<Socket> | null)?.unref?.(); // Bun has none
    child.stdin?.on("error", () => {});
    child.stdout?.setEncoding("utf8").on("data", (text: string) => this.read(child, text));
  }

  /** Let it end by itself: it finishes what it is doing. */
  stop(): void {
    const child = this.child;
    this.child = undefined;
    child?.stdin?.end();
  }

  tell(method: string, params: Json): void {
    this.write({ method, params });
  }

  /** The answer to a request. `id` names it in the child's own questions. */
  ask(method: string, params: Json, id = this.next()): Promise<unknown> {
    if (!this.child) return Promise.reject(new Error("it is not running"));
    return new Promise<unknown>((resolve, reject) => {
      let timer: NodeJS.Timeout | undefined;
      this.heard = Date.now();
      const look = () => {
        const left = this.asked ? this.silence : this.silence - (Date.now() - this.heard);
        if (left <= 0) this.kill(`it did not answer for ${Math.round(this.silence / 1000)} s`);
        else timer = setTimeout(look, left);
      };
      const ended = <T>(then: (value: T) => void) => (value: T) => {
        clearTimeout(timer);
        this.waiting.delete(id);
        then(value);
      };
      this.waiting.set(id, { resolve: ended(resolve), reject: ended(reject) });
      look();
      this.write({ id, method, params: { ...params, call: id } });
    });
  }

  next(): number {
    return ++this.last;
  }

  private kill(why: string): void {
    const child = this.child;
    child?.kill("SIGKILL");
    if (child) this.lost(child, new Error(why));
  }

  private lost(child: ChildProcess, why: Error): void {
    if (this.child !== child) return;
    this.child = undefined;
    for (const one of [...this.waiting.values()]) one.reject(why);
  }

  private write(message: Json): void {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    const ascii = text.replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    this.child?.stdin?.write(`${ascii}\n`);
  }

  private read(child: ChildProcess, text: string): void {
    if (this.child !== child) return;
    this.heard = Date.now();
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    try {
      if (this.rest.length > LONGEST_LINE) throw new Error("a line has no end");
      for (const line of lines) this.take(JSON.parse(line) as Json);
    } catch {
      this.kill("it sent what is not JSON");
    }
  }

  private take(message: Json): void {
    const { id, method } = message;
    if (typeof method === "string") {
      void this.answer(method, (message.params ?? {}) as Json, id);
      return;
    }
    const one = typeof id === "number" ? this.waiting.get(id) : undefined;
    const error = message.error as { message?: unknown } | undefined;
    if (error) one?.reject(new Refused(String(error.message)));
    else one?.resolve(message.result);
  }

  private async answer(method: string, params: Json, id: unknown): Promise<void> {
    const child = this.child;
    const args = Array.isArray(params.args) ? params.args : [];
    const question = id !== undefined;
    let reply: Json;
    if (question) this.asked++;
    try {
      reply = { result: (await this.serve(method, args, Number(params.call ?? 0))) ?? null };
    } catch (error) {
      reply = { error: { code: -32000, message: error instanceof Error ? error.message : String(error) } };
    }
    if (!question || this.child !== child) return;
    this.asked--;
    this.heard = Date.now();
    this.write({ id, ...reply });
  }
}
