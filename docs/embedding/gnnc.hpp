// gnnc.h for C++17: handles that free themselves, and exceptions.  One header; needs nothing but
// gnnc.h and the library of a model.
#ifndef GNNC_HPP
#define GNNC_HPP

#include <gnnc.h>

#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace gnnc {

class error : public std::runtime_error {
  public:
    error(gnnc_status status, const std::string &what)
        : std::runtime_error(std::string(gnnc_status_text(status)) + ": " + what), status(status) {
    }
    const gnnc_status status;
};

inline void check(gnnc_status status, const char *what) {
    if (status != GNNC_OK) throw error(status, what);
}

// A C++ array as gnnc_graph takes it: [n], or [n / width, width], an error where that leaves a
// rest. Copied by the call it goes to.
template <class T> struct element;
template <> struct element<float> {
    static constexpr gnnc_element type = GNNC_DT_F32;
};
template <> struct element<double> {
    static constexpr gnnc_element type = GNNC_DT_F64;
};
template <> struct element<std::int8_t> {
    static constexpr gnnc_element type = GNNC_DT_I8;
};
template <> struct element<std::int32_t> {
    static constexpr gnnc_element type = GNNC_DT_I32;
};
template <> struct element<std::int64_t> {
    static constexpr gnnc_element type = GNNC_DT_I64;
};

template <class T> gnnc_array array(const std::vector<T> &v, std::int64_t width = 0) {
    const auto n = static_cast<std::int64_t>(v.size());
    if (width < 0 || (width && n % width))
        throw error(GNNC_E_SHAPE,
                    std::to_string(n) + " values are no rows of " + std::to_string(width));
    gnnc_array a = {};
    a.struct_size = sizeof a;
    a.data = v.data();
    a.dtype = element<T>::type;
    a.rank = width ? 2 : 1;
    a.shape[0] = width ? n / width : n;
    a.shape[1] = width;
    return a;
}

// One reference to what gnnc counts the references of; a copy is one more.
template <class T, void (*Retain)(T *), void (*Release)(T *)> class counted {
  public:
    explicit counted(T *p = nullptr) : p(p) {
    }
    counted(const counted &other) : p(other.p) {
        Retain(p);
    }
    counted(counted &&other) noexcept : p(other.p) {
        other.p = nullptr;
    }
    counted &operator=(counted other) noexcept {
        std::swap(p, other.p);
        return *this;
    }
    ~counted() {
        Release(p);
    } // NULL is allowed
    T *get() const {
        return p;
    }

  private:
    T *p;
};

// A program with weights; nothing of it changes.
class model {
  public:
    model(const gnnc_program &program, const std::string &weights) : model(program) {
        gnnc::check(gnnc_model_load(get(), weights.c_str()), gnnc_model_error(get()));
    }
    model(const gnnc_program &program, const std::vector<char> &weights) : model(program) {
        gnnc::check(gnnc_model_load_from(get(), weights.data(), weights.size()),
                    gnnc_model_error(get()));
    }
    gnnc_model *get() const {
        return handle.get();
    }

  private:
    explicit model(const gnnc_program &program) {
        gnnc_model *m = nullptr;
        gnnc::check(gnnc_model_create(&m, &program), "a model");
        handle = handle_type(m);
    }
    using handle_type = counted<gnnc_model, gnnc_model_retain, gnnc_model_release>;
    handle_type handle;
};

// What made the columns that the model learned from; any number of threads share it.
class encoder {
  public:
    explicit encoder(const model &m) {
        gnnc_encoder *e = nullptr;
        gnnc::check(gnnc_encoder_create(&e), "an encoder");
        handle.reset(e);
        gnnc::check(gnnc_encoder_of_model(e, m.get()), gnnc_encoder_error(e));
    }
    const gnnc_encoder *get() const {
        return handle.get();
    }

  private:
    struct destroy {
        void operator()(gnnc_encoder *e) const {
            gnnc_encoder_destroy(e);
        }
    };
    std::unique_ptr<gnnc_encoder, destroy> handle;
};

// Data; built by one thread, and shared by any number once it is committed.
class graph {
  public:
    graph() : graph(create()) {
    }
    static graph read(const std::string &directory) {
        graph g;
        g.check(gnnc_graph_read(g.get(), directory.c_str(), 1));
        return g.commit();
    }
    graph &nodes(const char *type, std::int64_t count) {
        return check(gnnc_graph_add_nodes(get(), type, count));
    }
    graph &edges(const char *name, const char *from, const char *to,
                 const std::vector<std::int64_t> &src, const std::vector<std::int64_t> &dst) {
        const gnnc_array s = array(src), d = array(dst);
        return check(gnnc_graph_add_edges(get(), name, from, to, &s, &d));
    }
    template <class T>
    graph &column(const char *table, const char *name, gnnc_kind kind, const std::vector<T> &values,
                  std::int64_t width = 0) {
        const gnnc_array a = array(values, width);
        return check(gnnc_graph_add_column(get(), table, name, kind, &a, -1, nullptr));
    }
    // The column's values are this encoder's, or right without one: gnnc_encoder_unchecked().
    graph &encoded(const char *table, const char *name, const gnnc_encoder *e) {
        return check(gnnc_graph_set_encoded(get(), table, name, e));
    }
    graph &commit() {
        return check(gnnc_graph_commit(get()));
    }
    gnnc_graph *get() const {
        return handle.get();
    }

  private:
    explicit graph(gnnc_graph *g) : handle(g) {
    }
    static gnnc_graph *create() {
        gnnc_graph *g = nullptr;
        gnnc::check(gnnc_graph_create(&g), "a graph");
        return g;
    }
    graph &check(gnnc_status status) {
        gnnc::check(status, gnnc_graph_error(get()));
        return *this;
    }
    counted<gnnc_graph, gnnc_graph_retain, gnnc_graph_release> handle;
};

// One thread's predictions; it moves, and clone() makes one for another thread.
class session {
  public:
    session(const model &m, const graph &g) {
        gnnc_session *s = nullptr;
        gnnc::check(gnnc_session_create(&s), "a session");
        handle.reset(s);
        check(gnnc_session_open(s, m.get(), g.get()));
    }
    session clone() const {
        gnnc_session *s = nullptr;
        check(gnnc_session_clone(&s, get()));
        return session(s);
    }
    std::int64_t rows() const {
        return gnnc_session_rows(get());
    }
    // Numbers that are predicted of a row.
    std::size_t width() const {
        int rank = 0;
        std::int64_t dim[GNNC_MAX_RANK], n = 1;
        check(gnnc_session_row_shape(get(), &rank, dim));
        for (int i = 0; i < rank; i++) n *= dim[i];
        return static_cast<std::size_t>(n);
    }
    // [ids, width]
    std::vector<float> predict(const std::vector<std::int64_t> &ids) {
        std::vector<float> out(ids.size() * width());
        const auto n = static_cast<std::int64_t>(ids.size());
        check(gnnc_session_predict(get(), n, ids.data(), out.data()));
        return out;
    }
    gnnc_session *get() const {
        return handle.get();
    }

  private:
    struct destroy {
        void operator()(gnnc_session *s) const {
            gnnc_session_destroy(s);
        }
    };
    explicit session(gnnc_session *s) : handle(s) {
    }
    void check(gnnc_status status) const {
        gnnc::check(status, gnnc_session_error(get()));
    }
    std::unique_ptr<gnnc_session, destroy> handle;
};

// Training; of a library of --emit=lib.
class trainer {
  public:
    explicit trainer(const gnnc_program &program) {
        gnnc_trainer *t = nullptr;
        gnnc::check(gnnc_trainer_create(&t, &program), "a trainer");
        handle.reset(t);
    }
    trainer &set(const char *option, std::int64_t value) {
        return check(gnnc_trainer_set_int(get(), option, value));
    }
    trainer &set(const char *option, double value) {
        return check(gnnc_trainer_set_real(get(), option, value));
    }
    trainer &load(const graph &g) {
        return check(gnnc_trainer_load_graph(get(), g.get()));
    }
    bool done() const {
        return gnnc_trainer_done(get()) != 0;
    }
    trainer &epoch() {
        return check(gnnc_trainer_epoch(get()));
    }
    trainer &keep_best() {
        return check(gnnc_trainer_keep_best(get(), nullptr));
    }
    double metric(const char *name) {
        double value = 0;
        check(gnnc_trainer_metric(get(), name, &value));
        return value;
    }
    // What model() takes.
    std::vector<char> weights() {
        std::vector<char> to;
        check(gnnc_trainer_save_weights_to(get(), append, &to));
        return to;
    }
    gnnc_trainer *get() const {
        return handle.get();
    }

  private:
    struct destroy {
        void operator()(gnnc_trainer *t) const {
            gnnc_trainer_destroy(t);
        }
    };
    trainer &check(gnnc_status status) {
        gnnc::check(status, gnnc_trainer_error(get()));
        return *this;
    }
    // No exception may pass through the library.
    static int append(void *to, const void *data, std::size_t n, std::size_t) try {
        const char *from = static_cast<const char *>(data);
        auto &bytes = *static_cast<std::vector<char> *>(to);
        bytes.insert(bytes.end(), from, from + n);
        return 0;
    } catch (const std::bad_alloc &) {
        return 1;
    }
    std::unique_ptr<gnnc_trainer, destroy> handle;
};

} // namespace gnnc
#endif
