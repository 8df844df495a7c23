/** The sum of a basket in cents, with a discount in percent. */
export function total(items, discountPercent = 0) {
  const sum = items.reduce((cents, item) => cents + item.cents * item.count, 0);
  return sum - sum * discountPercent;
}
