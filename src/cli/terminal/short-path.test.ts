import { expect, test } from "vitest";
import { displayWidth } from "./plain-text.ts";
import { shortPath } from "./short-path.ts";

test("shortens a folder to the columns available, keeping its last parts", () => {
  const short = (path: string, columns = 20, home = "/users/ada") => shortPath(path, { home, columns });
  expect(short("/users/ada")).toBe("~");
  expect(short("/users/ada/shop")).toBe("~/shop");
  expect(short("/users/adam/shop")).toBe("/users/adam/shop");
  expect(short("/srv/shop", 20, "/")).toBe("/srv/shop");
  expect(short("/users/ada/code/customers/shop/src")).toBe("…/customers/shop/src");
  expect(short("/users/ada/code/customers/shop/src", 12)).toBe("…/shop/src");
  expect(short(`/srv/${"long".repeat(10)}`, 12)).toBe("…/longlongl…");
  expect(displayWidth(short(`/srv/${"店".repeat(30)}`, 12))).toBeLessThanOrEqual(12);
  expect(short("/srv/a\u001b[31mb", 40)).not.toContain("\u001b");
});
