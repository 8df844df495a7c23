import { join } from "node:path";
import { runAgent } from "caisson";

/**
 * Lets an agent fix a copy of a sample project, with a hook that can block its tool calls. The model is a script; name
 * a real one to use it.
 */
const demo = join(import.meta.dirname, "demo");

const result = await runAgent({
  task: "Make the tests pass.",
  model: process.argv[2] ?? `scripted:${join(demo, "script.yaml")}`,
  folder: join(demo, "project"),
  hooks: {
    before: [
      ({ tool, arguments: toolArguments }) =>
        tool === "bash" && JSON.stringify(toolArguments).includes("git push")
          ? { kind: "block", reason: "this agent must not push" }
          : { kind: "continue" },
    ],
  },
  onRunEvent: (event) => {
    if (event.type === "tool.ended") console.log(`${event.data.outcome} after ${Math.round(event.data.durationMs)} ms`);
  },
});
console.log(`${result.reason}: ${result.text}`);
console.log(`See what it changed: caisson diff ${result.run}`);
