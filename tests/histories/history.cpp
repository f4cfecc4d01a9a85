// Histories as text.
#include "history.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace suite {
namespace {

[[noreturn]] void refuse(const std::string& line) {
  std::fprintf(stderr, "histories: this is no line of a history: %s\n", line.c_str());
  std::exit(2);
}

Piece parse_piece(const std::string& word) {
  Piece p;
  if (std::sscanf(word.c_str(), "%ld:%ld:%ld", &p.a, &p.b, &p.c) < 1) refuse(word);
  return p;
}

Op parse_op(const std::string& line) {
  std::istringstream words(line);
  std::string who, piece;
  Op op;
  if (!(words >> op.verb >> op.handle >> who >> op.word)) refuse(line);
  if (op.handle < 0 || op.handle >= kHandles) refuse(line);
  if (who != "all" && std::sscanf(who.c_str(), "@%d", &op.who) != 1) refuse(line);
  while (words >> piece) op.pieces.push_back(parse_piece(piece));
  return op;
}

std::string to_text(const Op& op) {
  std::string text = op.verb + " " + std::to_string(op.handle) + " " +
                     (op.who == kAll ? "all" : "@" + std::to_string(op.who)) + " " + op.word;
  for (const Piece& p : op.pieces) {
    text += " " + std::to_string(p.a);
    if (p.b != 0 || p.c != 0) text += ":" + std::to_string(p.b);
    if (p.c != 0) text += ":" + std::to_string(p.c);
  }
  return text;
}

}  // namespace

History parse_history(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  History history;
  if (!std::getline(lines, line) || std::sscanf(line.c_str(), "ranks %d", &history.ranks) != 1)
    refuse(line);
  while (std::getline(lines, line))
    if (!line.empty() && line.front() != '#') history.ops.push_back(parse_op(line));
  return history;
}

std::string to_text(const History& history) {
  std::string text = "ranks " + std::to_string(history.ranks) + "\n";
  for (const Op& op : history.ops) text += to_text(op) + "\n";
  return text;
}

}  // namespace suite
