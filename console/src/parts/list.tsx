import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp } from "lucide-react";
import { type MouseEvent, memo, type ReactNode, useEffect, useId, useRef } from "react";
import styles from "./list.module.css";
import { useListKeys, useListKeysEverywhere, useRowClicks } from "./list-actions.ts";
import { type Selection, step } from "./selection.ts";
import { useIsPhone } from "./use-is-phone.ts";

const ROW_PX = 40;
const PHONE_ROW_PX = 68;
const OVERSCAN_ROWS = 6;

export interface Column<Item> {
  id: string;
  name: string;
  /** A CSS grid track, such as `minmax(0, 2fr)` or `90px`. */
  width: string;
  cell(item: Item): ReactNode;
  canSort?: boolean;
  isEnd?: boolean;
}

/** An order. In the address, `-created` means by `created`, descending. */
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
  /** Renders a row for screens without room for columns. */
  phoneRow(item: Item): ReactNode;
  selection: Selection;
  onSelection(selection: Selection): void;
  sort: Sort;
  onSort(sort: Sort): void;
  /** Handles keys in addition to those of every list. Returns whether it handled this key. */
  onKey?(key: string): boolean;
}

/**
 * A list of tens of thousands of rows that renders only those in view. Arrows or j and k move, x selects, Shift
 * extends, Enter opens, Ctrl A selects all, Escape selects none.
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
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: measured again when the layout changes.
  useEffect(() => rows.measure(), [isPhone]);
  const onKeyDown = useListKeys(props, (index) => rows.scrollToIndex(index));
  useListKeysEverywhere(scroller, onKeyDown);
  const onRow = useRowClicks(props);
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
        onKeyDown={(event) => onKeyDown(event.nativeEvent)}
      >
        <div className={styles.all} style={{ blockSize: rows.getTotalSize() }} role="presentation">
          {rows.getVirtualItems().map(({ index, start, size }) => {
            const item = items[index] as Item;
            const id = idOf(item);
            return (
              // Keyed by position: if a filter puts another item here, only some text changes, and no element is
              // created.
              <Row
                key={index}
                {...{ item, index, columns, isPhone, template, onRow }}
                phoneRow={props.phoneRow}
                id={`${prefix}${id}`}
                name={props.nameOf(item)}
                isChosen={selection.chosen.has(id)}
                isCurrent={selection.current === id}
                sizePx={size}
                startPx={start}
              />
            );
          })}
        </div>
      </div>
    </div>
  );
}

function Head<Item>({ columns, items, idOf, selection, onSelection, sort, onSort, template }: ListProps<Item> & { template: string }) {
  const isAll = items.length > 0 && selection.chosen.size === items.length;
  return (
    <div className={styles.head} style={{ gridTemplateColumns: template }}>
      <input
        type="checkbox"
        aria-label="Select all"
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

interface RowProps<Item> {
  item: Item;
  id: string;
  name: string;
  index: number;
  columns: readonly Column<Item>[];
  phoneRow(item: Item): ReactNode;
  isPhone: boolean;
  isChosen: boolean;
  isCurrent: boolean;
  template: string;
  sizePx: number;
  startPx: number;
  onRow(event: MouseEvent, item: Item): void;
}

const Row = memo(PlainRow) as typeof PlainRow;

function PlainRow<Item>(props: RowProps<Item>) {
  const { item, id, name, index, columns, phoneRow, isPhone, isChosen, isCurrent, template, sizePx, startPx, onRow } = props;
  const style = { blockSize: sizePx, translate: `0 ${startPx}px`, ...(!isPhone && { gridTemplateColumns: template }) };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the list does the same.
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus and names the active row.
    // biome-ignore lint/a11y/useSemanticElements: a table's rows cannot be placed one by one.
    <div
      id={id}
      role="row"
      aria-rowindex={index + 1}
      aria-selected={isChosen}
      className={`${styles.row} ${isCurrent ? styles.current : ""} ${isPhone ? styles.phone : ""}`}
      style={style}
      onClick={(event) => onRow(event, item)}
    >
      <Cell className={styles.choice}>
        <input type="checkbox" tabIndex={-1} aria-label={`Select ${name}`} checked={isChosen} readOnly />
      </Cell>
      <Cells {...{ item, columns, phoneRow, isPhone }} />
    </div>
  );
}

/** Separate from the row, which moves when a filter removes rows above it. */
const Cells = memo(PlainCells) as typeof PlainCells;

function PlainCells<Item>({
  item,
  columns,
  phoneRow,
  isPhone,
}: Pick<RowProps<Item>, "item" | "columns" | "phoneRow" | "isPhone">): ReactNode {
  if (isPhone) return <Cell className={styles.card}>{phoneRow(item)}</Cell>;
  return columns.map((column) => (
    <Cell key={column.id} className={`${styles.cell} ${column.isEnd ? styles.end : ""}`}>
      {column.cell(item)}
    </Cell>
  ));
}

function Cell({ className, children }: { className: string | undefined; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: part of a grid that is not made of table elements.
    // biome-ignore lint/a11y/useFocusableInteractive: the list has the focus.
    <div role="gridcell" className={className}>
      {children}
    </div>
  );
}
