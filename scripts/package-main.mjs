// The program as npm installs it. Nothing is imported at the top: an older Node must get as far as the message.
const needed = [22, 18];
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
if (major < needed[0] || (major === needed[0] && minor < needed[1])) {
  console.error(`caisson: Node ${needed.join(".")} or later is needed; this is ${process.versions.node}`);
  process.exit(125);
}
await import("./main.mjs");
