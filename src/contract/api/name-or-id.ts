import { z } from "zod";

/** How a path refers to a thing: by id, id prefix or name. The station resolves it. */
export const NameOrId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "is neither an id nor a name");
