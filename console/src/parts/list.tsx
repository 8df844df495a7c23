import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { type KeyboardEvent, type MouseEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { useLocation } from "wouter";
import styles from "./list.module.css";
import { type Selection, type SelectionStep, step } from "./selection.ts";
import { useIsPhone } from "./use-is-phone.ts";

const ROW_PX = 40;
const PHONE_ROW_PX = 68;
const OVERSCAN_ROWS = 12;
const PAGE_ROWS = 10;

export interface Column<Item> {
  id: string;
  name: string;
  /** Of a grid's track, such as `minmax(0, 2fr)` or `90px`. */
  width: string;
  cell(item: Item): ReactNode;
  canSort?: boolean;
  isEnd?: boolean;
}

/** `-created` in an address: by `created`, the greatest first. */
export interface Sort {
  by: string;
  isDown: boolean;
}

interface ListProps<Item> {
  label: string;
  items: readonly Item[];
  idOf(item: Item): string;
  hrefOf(item: Item): string;
  nameOf(item: Item): string;
  columns: readonly Column<Item>[];
  /** One row where there is no room for columns. */
  phoneRow(item: Item): ReactNode;
  selection: Selection;
  onSelection(selection: Selection): void;
  sort: Sort;
  onSort(sort: Sort): void;
  /** Keys beyond those that every list has; true: it was one of them. */
  onKey?(key: string): boolean;
}

/**
 * Rows by the ten thousand, of which those in view exist. Arrows or j and k move, x chooses, Shift extends, Enter opens,
 * Ctrl A chooses all, Escape none.
 */
export function List<Item>(props: ListProps<Item>) {
  const { label, items, idOf, selection, columns } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const isPhone = useIsPhone();
  const prefix = useId();
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => (isPhone ? PHONE_ROW_PX : ROW_PX),
    overscan: OVERSCAN_ROWS,
    getItemKey: (index) => idOf(items[index] as Item),
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measured again when the layout changes.
  useEffect(() => rows.measure(), [isPhone]);
  const onKeyDown = useListKeys(props, (index) => rows.scrollToIndex(index));
  const template = `28px ${columns.map(({ width }) => width).join(" ")}`;
  return (
    <div className={styles.list}>
      {!isPhone && <Head {...props} template={template} />}
      {/* biome-ignore lint/a11y/useSemanticElements: a table's rows cannot be placed one by one. */}
      <div
        ref={scroller}
        className={styles.rows}
        role="grid"
        aria-label={label}
        aria-multiselectable="true"
        aria-rowcount={items.length}
        aria-activedescendant={selection.current === null ? undefined : `${prefix}${selection.current}`}
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        <div className={styles.all} style={{ blockSize: rows.getTotalSize() }} role="presentation">
          {rows.getVirtualItems().map(({ index, start, size, key }) => (
            <Row
              key={key}
              {...props}
              {...{ index, isPhone, template, prefix }}
              item={items[index] as Item}
              style={{ blockSize: size, translate: `0 ${start}px` }}
            />
          ))}
        </div>
      </div>
    </div>
  );
}

function useListKeys<Item>(props: ListProps<Item>, show: (index: number) => void) {
  const { items, idOf, hrefOf, selection, onSelection, onKey } = props;
  const [, navigate] = useLocation();
  return (event: KeyboardEvent) => {
    if (event.target instanceof HTMLInputElement && event.key !== "Escape") return;
    const taken = stepOf(event);
    if (taken !== null) {
      event.preventDefault();
      const next = step(selection, items.map(idOf), taken);
      onSelection(next);
      const index = items.findIndex((item) => idOf(item) === next.current);
      if (index >= 0 && (taken.kind === "move" || taken.kind === "toEnd")) show(index);
      return;
    }
    const current = items.find((item) => idOf(item) === selection.current);
    if (event.key === "Enter" && current !== undefined && event.target === event.currentTarget) navigate(hrefOf(current));
    else if (!event.ctrlKey && !event.metaKey && !event.altKey && onKey?.(event.key)) event.preventDefault();
  };
}

function stepOf({ key, shiftKey, ctrlKey, metaKey }: KeyboardEvent): SelectionStep | null {
  if (key === "a" && (ctrlKey || metaKey)) return { kind: "all" };
  if (ctrlKey || metaKey) return null;
  const moves: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, J: 1, K: -1, PageDown: PAGE_ROWS, PageUp: -PAGE_ROWS };
  const by = moves[key];
  if (by !== undefined) return { kind: "move", by, extends: shiftKey };
  if (key === "Home" || key === "End") return { kind: "toEnd", end: key === "Home" ? "first" : "last" };
  if (key === "x" || key === " ") return { kind: "toggle" };
  return key === "Escape" ? { kind: "none" } : null;
}

function Head<Item>({ columns, items, idOf, selection, onSelection, sort, onSort, template }: ListProps<Item> & { template: string }) {
  const isAll = items.length > 0 && selection.chosen.size === items.length;
  return (
    <div className={styles.head} style={{ gridTemplateColumns: template }}>
      <input
        type="checkbox"
        aria-label="Choose all"
        checked={isAll}
        ref={(box) => {
          if (box !== null) box.indeterminate = selection.chosen.size > 0 && !isAll;
        }}
        onChange={() => onSelection(step(selection, items.map(idOf), { kind: isAll ? "none" : "all" }))}
      />
      {columns.map(({ id, name, canSort = false, isEnd = false }) => {
        const isBy = sort.by === id;
        const Icon = sort.isDown ? ArrowDown : ArrowUp;
        const className = `${styles.name} ${isEnd ? styles.end : ""}`;
        if (!canSort) {
          return (
            <span key={id} className={className}>
              {name}
            </span>
          );
        }
        return (
          <button
            key={id}
            type="button"
            className={className}
            aria-label={`Sort by ${name}${isBy ? `, ${sort.isDown ? "descending" : "ascending"} now` : ""}`}
            onClick={() => onSort({ by: id, isDown: isBy ? !sort.isDown : sort.isDown })}
          >
            {name}
            {isBy && <Icon aria-hidden="true" />}
          </button>
        );
      })}
    </div>
  );
}

interface RowProps<Item> extends ListProps<Item> {
  item: Item;
  index: number;
  isPhone: boolean;
  template: string;
  prefix: string;
  style: { blockSize: number; translate: string };
}

function Row<Item>(props: RowProps<Item>) {
  const { item, items, index, idOf, hrefOf, nameOf, columns, phoneRow, selection, onSelection, isPhone, template, prefix, style } = props;
  const [, navigate] = useLocation();
  const id = idOf(item);
  const choose = (event: MouseEvent) => {
    event.stopPropagation();
    onSelection(step(selection, items.map(idOf), event.shiftKey ? { kind: "range", id } : { kind: "toggle", id }));
  };
  const open = (event: MouseEvent) => {
    if ((event.target as Element).closest("a, button, input") !== null) return;
    if (event.shiftKey || event.ctrlKey || event.metaKey) return choose(event);
    navigate(hrefOf(item));
  };
  const columnsStyle = isPhone ? {} : { gridTemplateColumns: template };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the list does the same.
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus and says which row is meant.
    // biome-ignore lint/a11y/useSemanticElements: a table's rows cannot be placed one by one.
    <div
      id={`${prefix}${id}`}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={selection.chosen.has(id)}
      className={`${styles.row} ${selection.current === id ? styles.current : ""} ${isPhone ? styles.phone : ""}`}
      style={{ ...style, ...columnsStyle }}
      onClick={open}
    >
      <Cell className={styles.choice}>
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={`Choose ${nameOf(item)}`}
          checked={selection.chosen.has(id)}
          onClick={choose}
          readOnly
        />
      </Cell>
      {isPhone ? (
        <Cell className={styles.card}>{phoneRow(item)}</Cell>
      ) : (
        columns.map((column) => (
          <Cell key={column.id} className={`${styles.cell} ${column.isEnd ? styles.end : ""}`}>
            {column.cell(item)}
          </Cell>
        ))
      )}
    </div>
  );
}

function Cell({ className, children }: { className: string | undefined; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: part of a grid that is none of table elements.
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus.
    <div role="gridcell" className={className}>
      {children}
    </div>
  );
}
