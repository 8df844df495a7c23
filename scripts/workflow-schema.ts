import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { workflowSchema } from "../src/workflow/json-schema.ts";

// Writes the schema that editors check workflow files with.
writeFileSync(join(import.meta.dirname, "..", "docs", "workflow.schema.json"), `${JSON.stringify(workflowSchema(), null, 2)}\n`);
