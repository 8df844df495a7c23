import { join } from "node:path";
import { rolldown } from "rolldown";

/** zod is some ninety files, which cost every start more than the sandbox does; as one file they do not. See src/main.ts. */
const root = join(import.meta.dirname, "..");
const bundle = await rolldown({ input: join(root, "node_modules", "zod", "index.js"), platform: "node", treeshake: false });
await bundle.write({ file: join(root, "build", "zod.mjs"), format: "esm" });
await bundle.close();
