import { expect, test } from "vitest";
import { bytesText } from "./bytes-text.ts";

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1024, "1 KiB"],
  [4300, "4.2 KiB"],
  [300 * 1024 * 1024, "300 MiB"],
  [1.5 * 1024 ** 3, "1.5 GiB"],
])("%d bytes are %s", (bytes, text) => {
  expect(bytesText(bytes)).toBe(text);
});
