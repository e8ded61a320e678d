// What a test asks of Pi by a command: /nav ENTRY [sum] goes there in the tree, /emit NAME JSON
// says something on the bus of extensions, /marker appends a message of its own.
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.registerCommand("nav", {
    description: "go to an entry",
    handler: async (args, ctx) => {
      const [id = "", how] = args.trim().split(/\s+/);
      const done = await ctx.navigateTree(id, { summarize: how === "sum" });
      ctx.ui.notify(`nav ${done.cancelled ? "cancelled" : "done"}`, "info");
    },
  });
  pi.registerCommand("emit", {
    description: "say something on the bus",
    handler: async (args) => {
      const at = args.indexOf(" ");
      pi.events.emit(args.slice(0, at), JSON.parse(args.slice(at + 1)));
    },
  });
  pi.registerCommand("marker", {
    description: "append a message",
    handler: async () => pi.sendMessage({ customType: "marker", content: "summarized", display: true }),
  });
}
