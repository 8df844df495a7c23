import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openApiDocument } from "../src/api/openapi.ts";

/** Rewrites the description of the HTTP API from the table of routes. */
writeFileSync(join(import.meta.dirname, "..", "docs", "openapi.json"), `${JSON.stringify(openApiDocument(), null, 2)}\n`);
