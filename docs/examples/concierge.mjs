#!/usr/bin/env node
/**
 * A hotel concierge without a model: one program run per turn.
 *
 * It reads the turn as JSON on stdin and answers on stdout with the messages that belong into the
 * conversation and a result for whoever waits. A turn may be given again after a crash, so whatever
 * must happen once goes by the `inputId`; this program only talks and has nothing to repeat.
 */
import { text } from "node:stream/consumers";

const hours = {
  breakfast: "7:00 to 10:30",
  kitchen: "12:00 to 22:00",
  restaurant: "12:00 to 22:00",
  bar: "17:00 to 1:00",
};

const turn = JSON.parse(await text(process.stdin));
const replies = turn.inputs.map((input) => ({ inputId: input.inputId, content: answer(input) }));

process.stdout.write(
  JSON.stringify({
    messages: replies.map(({ inputId, content }) => ({ role: "assistant", inputId, content })),
    result: replies.map(({ content }) => content).join("\n"),
  }),
);

function answer({ kind, payload }) {
  if (kind === "externalEvent") return answerEvent(payload.eventType, payload.payload);
  if (kind === "prompt") return answerGuest(payload.text);
  return "Noted.";
}

/** What guests ask. The first pattern that fits answers. */
function answerGuest(question) {
  const rules = [
    [/\b(table|dinner|reserve|book)\b.*?\bfor (\w+)\b/i, bookTable],
    [/\b(breakfast|kitchen|restaurant|bar)\b/i, openingHours],
    [
      /\b(pool|sauna|gym)\b/i,
      (_, place) => `The ${place.toLowerCase()} is open from 6:00 to 22:00.`,
    ],
    [
      /\bwi-?fi|internet\b/i,
      () => 'The network is "Harbour Guest"; the password is on your key card.',
    ],
    [
      /\bcheck(?:ing)?[ -]?out\b/i,
      () => "Check-out is until 11:00. We keep your luggage until the evening.",
    ],
    [
      /\bcheck(?:ing)?[ -]?in\b/i,
      () => "Your room is ready from 15:00; the desk is staffed all night.",
    ],
    [
      /\btaxi\b/i,
      () => `A taxi is ordered${timeIn(question, " for ")}. It waits at the side entrance.`,
    ],
    [
      /\b(towels?|pillows?|blankets?)\b/i,
      (_, thing) => `Housekeeping brings the ${thing.toLowerCase()} shortly.`,
    ],
    [
      /\b(invoice|receipt|bill)\b/i,
      (_, paper) => `Your ${paper.toLowerCase()} is at the desk, and in your mail.`,
    ],
    [/\bparcel|package\b/i, () => "We write to you as soon as it arrives at the desk."],
    [/\b(thanks?|thank you)\b/i, () => "You are welcome."],
  ];
  for (const [pattern, reply] of rules) {
    const match = pattern.exec(question);
    if (match !== null) return reply(question, ...match.slice(1));
  }
  return "I pass this on to a colleague at the desk, who answers within the hour.";
}

function bookTable(question, _, guests) {
  return `A table for ${guests} is reserved${timeIn(question, " at ")}. Please tell us of any allergies.`;
}

function openingHours(_, place) {
  return `Hours (${place.toLowerCase()}): ${hours[place.toLowerCase()]}.`;
}

function timeIn(question, before) {
  const time = /\b([01]?\d|2[0-3])[:.]([0-5]\d)\b/.exec(question);
  return time === null ? "" : `${before}${time[1]}:${time[2]}`;
}

/** What other systems report. */
function answerEvent(type, { order = "", room = "", amount = "", reason = "" }) {
  switch (type) {
    case "order.shipped":
      return `Parcel ${order} for room ${room} is on its way; the guest is told.`;
    case "order.delivered":
      return `Parcel ${order} is at the desk for room ${room}.`;
    case "payment.failed":
      return `The payment of ${amount} for room ${room} failed (${reason}). The guest is asked for another card.`;
    case "payment.settled":
      return `The payment of ${amount} for room ${room} is settled.`;
    case "room.ready":
      return `Room ${room} is ready; the guest is told.`;
    default:
      return `The event ${type} is noted.`;
  }
}
