import type { z } from "zod";

/**
 * Casts a value that JSON can represent although its type is wider: it has optional members, or was parsed elsewhere.
 */
export const asJson = (value: unknown): z.core.util.JSONType => value as z.core.util.JSONType;
