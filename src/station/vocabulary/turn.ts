/** A turn of a run: from a message to the next end of the run. */
export interface Turn {
  /** The sequence number of the event that started it. */
  seq: number;
  at: string;
  /** How many steps the run had taken before it. */
  stepsBefore: number;
}
