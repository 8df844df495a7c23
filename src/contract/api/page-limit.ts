import { z } from "zod";

/** Maximum number of items per answer of a list. */
export const pageLimit = z.int().min(1).max(10_000).default(1000);
