import { z } from "zod";

/** What stands in a path for a thing: its id, the beginning of it, or its name. The station knows which. */
export const NameOrId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "is neither an id nor a name");
