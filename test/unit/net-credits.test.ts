// Who may send: the counting by which no frame ever finds its receiver without a slot.
import { describe, expect, it } from 'vitest';
import { Returns, SendCredits } from '../../lib/net/credits.js';
import { Fifo } from '../../lib/net/fifo.js';

describe('credits', () => {
  it('are apart for frames with data and without, and the very last is for one that gives slots back', () => {
    const credits = new SendCredits(12, 8);
    for (let i = 0; i < 4; ++i) credits.spend(true);
    expect(credits.forData).toBe(0);
    for (let i = 0; i < 7; ++i) {
      expect(credits.mayTell(false)).toBe(true);
      credits.spend(false);
    }
    expect([credits.mayTell(false), credits.mayTell(true)]).toEqual([false, true]);
    credits.spend(false);
    expect(credits.mayTell(true)).toBe(false);
    expect(credits.returned({ data: 3, control: 0 })).toBe(true);
    expect([credits.forData, credits.mayTell(true)]).toEqual([3, false]);
    expect(credits.returned({ data: 4, control: 8 })).toBe(true);
    expect([credits.forData, credits.mayTell(false)]).toEqual([4, true]);
  });

  it('take no more back than were spent', () => {
    const credits = new SendCredits(12, 8);
    credits.spend(true);
    for (const wrong of [
      { data: 2, control: 0 },
      { data: 0xffffffff, control: 0 },
      { data: 1, control: 1 },
      { data: 0, control: 0xffff },
    ])
      expect(credits.returned(wrong)).toBe(false);
    expect(credits.returned({ data: 1, control: 0 })).toBe(true);
    expect(credits.returned({ data: 0, control: 0 })).toBe(false);
  });

  it('count on when a counter runs over', () => {
    const credits = new SendCredits(12, 8);
    const returns = new Returns(12, 8);
    for (let i = 0; i < 70_000; ++i) {
      credits.spend(false);
      returns.giveBack(false);
      if (!credits.returned(returns)) throw new Error(`it has lost count at ${i}`);
    }
    expect(returns.control).toBe(70_000 & 0xffff);
    expect(credits.mayTell(false)).toBe(true);
  });
});

describe('what is given back', () => {
  it('must be told when half of the slots for data are free', () => {
    const returns = new Returns(40, 8);
    for (let i = 0; i < 15; ++i) returns.giveBack(true);
    expect([returns.due, returns.data]).toEqual([false, 15]);
    returns.giveBack(true);
    expect(returns.due).toBe(true);
    returns.told();
    expect([returns.due, returns.data]).toEqual([false, 16]);
  });

  it('must be told when half of the reserve was used', () => {
    const returns = new Returns(40, 8);
    for (let i = 0; i < 4; ++i) returns.giveBack(false);
    expect([returns.due, returns.givesControlBack]).toEqual([true, true]);
  });
});

it('two ends that have each other all that they may can go on telling', () => {
  const end = () => ({
    credits: new SendCredits(9, 8),
    returns: new Returns(9, 8),
    way: [] as (() => void)[],
  });
  const [a, b] = [end(), end()];
  const tell = (from: typeof a, to: typeof a) => {
    if (!from.credits.mayTell(from.returns.givesControlBack)) return false;
    from.credits.spend(false);
    const counters = { data: from.returns.data, control: from.returns.control };
    from.returns.told();
    to.way.push(() => {
      to.returns.giveBack(false);
      expect(to.credits.returned(counters)).toBe(true);
    });
    return true;
  };
  const arrive = (at: typeof a) => at.way.splice(0).forEach((frame) => frame());
  while (tell(a, b));
  while (tell(b, a));
  // Nothing is due for ever: the ends fall silent, and each can send again.
  for (let round = 0; a.way.length + b.way.length > 0; ++round) {
    expect(round).toBeLessThan(10);
    arrive(a);
    arrive(b);
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const)
      if (from.returns.due) expect(tell(from, to)).toBe(true);
  }
  expect([tell(a, b), tell(b, a)]).toEqual([true, true]);
});

it('a queue keeps its order through any number of items', () => {
  const queue = new Fifo<number>();
  let next = 0;
  for (let i = 0; i < 5000; ++i) {
    queue.push(2 * i);
    queue.push(2 * i + 1);
    expect(queue.first).toBe(next);
    expect(queue.shift()).toBe(next++);
  }
  expect(queue.length).toBe(5000);
  expect([...queue].slice(0, 2)).toEqual([5000, 5001]);
  expect(queue.drain().length).toBe(5000);
  expect(queue.shift()).toBeUndefined();
});
