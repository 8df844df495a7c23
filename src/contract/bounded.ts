import { z } from "zod";

/** What Linux takes for a path. */
export const PATH_CHARACTERS_MAX = 4096;
/** As long as a body of a request may be: what holds for texts that are as long as their authors like. */
export const TEXT_CHARACTERS_MAX = 1024 * 1024;
/** A value of the environment, as Linux bounds it. */
export const ENV_CHARACTERS_MAX = 131_072;

/** Of one sandbox, run or agent. */
export const SECRETS_MAX = 100;

export const PathText = z.string().min(1).max(PATH_CHARACTERS_MAX);
export const LongText = z.string().max(TEXT_CHARACTERS_MAX);

/** A record with a bound on its keys, which the OpenAPI document states, too. */
export function recordOf<Key extends z.core.$ZodRecordKey, Value extends z.ZodType>(key: Key, value: Value, keysMax: number) {
  return z
    .record(key, value)
    .refine((record) => Object.keys(record).length <= keysMax, `has more than ${keysMax} keys`)
    .meta({ maxProperties: keysMax });
}
