import { z } from "zod";

/** Linux's limit for a path. */
export const PATH_CHARACTERS_MAX = 4096;
/** The limit for free-form text: the maximum size of a request body. */
export const TEXT_CHARACTERS_MAX = 1024 * 1024;
/** Linux's limit for one environment variable. */
export const ENV_CHARACTERS_MAX = 131_072;

/** Maximum number of secrets per sandbox, run or agent. */
export const SECRETS_MAX = 100;

export const PathText = z.string().min(1).max(PATH_CHARACTERS_MAX);
export const LongText = z.string().max(TEXT_CHARACTERS_MAX);

/** Creates a schema of a record with a maximum number of keys, which also appears in the OpenAPI document. */
export function recordOf<Key extends z.core.$ZodRecordKey, Value extends z.ZodType>(key: Key, value: Value, keysMax: number) {
  return z
    .record(key, value)
    .refine((record) => Object.keys(record).length <= keysMax, `has more than ${keysMax} keys`)
    .meta({ maxProperties: keysMax });
}
