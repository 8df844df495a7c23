import assert from "node:assert/strict";
import test from "node:test";
import { total } from "./price.js";

const basket = [
  { cents: 250, count: 2 },
  { cents: 1000, count: 1 },
];

test("adds up what is in the basket", () => assert.equal(total(basket), 1500));
test("takes off the discount", () => assert.equal(total(basket, 10), 1350));
test("rounds to whole cents", () => assert.equal(total([{ cents: 99, count: 1 }], 33), 66));
