/** Prefixes of the entries of the sessions folder that are not sessions. Names of sessions cannot have them. */

/** A note about a session that is being created for a future run. */
export const MAKING_PREFIX = ".making-";
/** A folder of a session that is being removed. */
export const GONE_PREFIX = ".gone-";
/** A note that a session goes by itself, with its run or workflow. */
export const LEAVING_PREFIX = ".leaving-";
