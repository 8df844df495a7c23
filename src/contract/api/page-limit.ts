import { z } from "zod";

/** How many things of a list one answer has. */
export const pageLimit = z.int().min(1).max(10_000).default(1000);
